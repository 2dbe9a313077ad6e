package main

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestOpenADR switches OpenADR on, makes clients and lists them.
func TestOpenADR(t *testing.T) {
	s := store{Database: freshDatabase(t), Environment: "sandbox"}
	run, _ := commandRunner(t)
	run((&orgAdd{cellFlags: cellFlags{store: s}, Name: "Acme", Username: "acme"}).Run, "acme")

	run((&orgSet{store: s, Name: "Acme", Values: []string{"openadr=maybe"}}).Run, "true or false")
	run((&orgSet{store: s, Name: "Acme", Values: []string{"openadr=true"}}).Run, "openadr")
	run((&openADRClientAdd{cellFlags: cellFlags{store: s}, Org: "Acme", ClientID: "acme-dispatch", Role: "BL"}).Run, "username  acme-dispatch")
	run((&openADRClientAdd{cellFlags: cellFlags{store: s}, Org: "Acme", ClientID: "site-7", Role: "VEN", JSON: true}).Run, `"username": "site-7"`)
	run((&openADRClientAdd{cellFlags: cellFlags{store: s}, Org: "Acme", ClientID: "site-7", Role: "VEN"}).Run, "is taken")
	run((&openADRClientAdd{cellFlags: cellFlags{store: s}, Org: "Acme", ClientID: "flexd", Role: "VEN"}).Run, "the client id flexd is that of the server's own reports")
	run((&openADRClientList{store: s, Org: "Acme"}).Run, "openadr_bl")
	run((&openADRClientList{store: s, Org: "Acme", JSON: true}).Run, `"openadr_ven"`)
	run((&openADRNotices{ofOrg: ofOrg{store: s, Org: "Acme"}, Limit: 5}).Run, "SUBSCRIPTION")

	of := ofOrg{store: s, Org: "Acme"}
	run((&openADRList{ofOrg: of}).Run, "PROGRAM")
	run((&openADROrders{ofOrg: of, Limit: 5, JSON: true}).Run, "[]")
	run((&openADRBind{ofOrg: of, Program: flex.ADRObjectID{1}, Service: "dno"}).Run, "no such object")
	run((&openADRBind{ofOrg: of, Program: flex.ADRObjectID{1}, Service: "dno", GSPGroup: "_Q", DryRun: true}).Run, "no GSP group")
	run((&openADRBind{ofOrg: of, Program: flex.ADRObjectID{1}, Kind: "limit", Service: "dno", DryRun: true}).Run, "name it (group)")
	run((&openADRUnbind{ofOrg: of, Program: flex.ADRObjectID{1}, DryRun: true}).Run, "no such object")
	run((&openADRUnbind{ofOrg: of, Program: flex.ADRObjectID{1}}).Run, "no such object")
	run((&auditList{store: s, Limit: 20, JSON: true}).Run, "instruction for the whole fleet, service dno")
	run((&auditList{store: s, Limit: 20}).Run, "add openadr client")
}

// TestProgramRow_NotBound prints no price and no levels of a program that is not bound.
func TestProgramRow_NotBound(t *testing.T) {
	cells := programRow{ID: "p", Name: "Peak"}.cells()
	for i, cell := range cells[2:] {
		if text := cellText(cell); text != "" {
			t.Errorf("cell %d is %q", i+2, text)
		}
	}
}

// TestOpenADRUpstream_NeverAnswered lists a server that never answered without an instant, and
// refuses another with the same name.
func TestOpenADRUpstream_NeverAnswered(t *testing.T) {
	s := store{Database: freshDatabase(t), Environment: "sandbox"}
	run, _ := commandRunner(t)
	run((&orgAdd{cellFlags: cellFlags{store: s}, Name: "Acme", Username: "acme"}).Run, "acme")

	of := ofOrg{store: s, Org: "Acme"}
	add := &openADRUpstreamAdd{
		ofOrg: of, Name: "the utility", URL: "https://vtn.example.com/openadr3/3.1.0", Client: "acme", Secret: "x", Program: "p",
		Poll: 30 * time.Second, Silence: 5 * time.Minute,
	}
	run(add.Run, "is its program here")
	run(add.Run, `another program is named "the utility"`)

	var out strings.Builder
	if err := (&openADRUpstreamList{ofOrg: of, JSON: true}).Run(t.Context(), console{out: &out}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "the utility") || strings.Contains(text, "heard_at") {
		t.Errorf("listed as %s", text)
	}
}
