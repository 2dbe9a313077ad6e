package ocppserver_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// block returns a fenced block of docs/ocpp.md by its name.
func block(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/ocpp.md")
	if err != nil {
		t.Fatal(err)
	}

	_, rest, ok := strings.Cut(string(text), " "+name+"\n")
	body, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatalf("docs/ocpp.md has no block %s", name)
	}

	lines := strings.Split(body, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "   ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}

// addressed are the paths that the page's shell lines ask flexd for.
var addressed = regexp.MustCompile(`curl [^\n]*localhost:8080(/[a-z/-]*)([^\n]*)`)

// TestDocs_Addresses: what the page's shell lines ask for is in the interface's document.
func TestDocs_Addresses(t *testing.T) {
	page, err := os.ReadFile("../../docs/ocpp.md")
	if err != nil {
		t.Fatal(err)
	}

	document, err := os.ReadFile("../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}

	lines := addressed.FindAllStringSubmatch(string(page), -1)
	if len(lines) < 2 {
		t.Fatalf("the page has %d lines that ask flexd", len(lines))
	}

	for _, line := range lines {
		_, rest, found := strings.Cut(string(document), "\n  "+line[1]+":\n")
		if !found {
			t.Errorf("%s is not in the document", line[1])
			continue
		}

		operation, _, _ := strings.Cut(rest, "\n  /")
		if form := strings.Contains(line[2], " -d username="); form && !strings.Contains(operation, "application/x-www-form-urlencoded") {
			t.Errorf("%s takes no form", line[1])
		}
	}
}

// TestDocs_FirstCharge: the page's files and body bring a charger to its first plan, in
// production.
func TestDocs_FirstCharge(t *testing.T) {
	line, err := ocppserver.HashPassword("CP1", "a password of some length")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/chargers.txt"
	if err := os.WriteFile(path, []byte("# mine\n"+line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	chargers, err := ocppserver.ReadChargers(path, nil)
	if err != nil {
		t.Fatal(err)
	}

	s := openIn(t, flex.Production, ocppserver.Settings{Chargers: chargers}, func(s *bench) {
		_, err := s.app.ImportMeters(t.Context(), strings.NewReader(block(t, "meters.csv")), nil)
		s.must(err)
		_, err = s.app.ImportModels(t.Context(), strings.NewReader(block(t, "models.csv")))
		s.must(err)

		var answer client.OnboardResponse
		s.must(s.client.Do(t.Context(), http.MethodPost, "/entities/site/onboard", nil, json.RawMessage(block(t, "onboard.json")), &answer))
		s.asset = answer.Assets[0].AssetID
	})
	c := newSim(t, s.url, "CP1", s.now)
	c.password = "a password of some length"
	c.boot()
	c.start(0)
	if p := c.given(); p.answer != "Accepted" {
		t.Errorf("the first plan came as %+v", p)
	}
}
