package main

import (
	"testing"
)

// TestCredentials walks through a credential's life on the command line.
func TestCredentials(t *testing.T) {
	s := store{Database: freshDatabase(t), Environment: "sandbox"}
	run, _ := commandRunner(t)

	run((&orgAdd{store: s, Name: "Acme", Username: "acme"}).Run, "acme")

	add := &credentialAdd{store: s, Org: "Acme", Username: "meters", Role: []string{"metrics_write"}}
	add.Expires = "2999-01-01"
	run(add.Run, "username  meters")
	run(add.Run, "is taken")
	run((&credentialAdd{store: s, Org: "Acme", Username: "x", Role: []string{"owner"}}).Run, `"owner" is no role`)
	run((&credentialAdd{store: s, Org: "Nobody", Username: "x"}).Run, "Nobody")

	past := &credentialAdd{store: s, Org: "Acme", Username: "x"}
	past.Expires = "2020-01-01"
	run(past.Run, "which is past")
	past.Expires = "soon"
	run(past.Run, "neither a date")

	run((&credentialRoll{store: s, Username: "meters"}).Run, "password  ")
	run((&credentialList{store: s, Org: "Acme"}).Run, "2999-01-01T00:00:00Z")
	run((&credentialList{store: s, Org: "Acme", JSON: true}).Run, `"expires_at": "2999-01-01T00:00:00Z"`)

	if err := (&credentialRevoke{store: s, Username: "meters"}).Run(t.Context()); err != nil {
		t.Error(err)
	}

	add.Expires = ""
	run(add.Run, "username  meters")
	run((&auditList{store: s, Limit: 20}).Run, "roll credential")
}
