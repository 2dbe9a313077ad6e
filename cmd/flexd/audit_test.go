package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// TestAudit signs the audit log, lets it grow, and then changes it behind its back.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	s := store{Database: "sqlite:" + filepath.Join(dir, "flexd.db"), Environment: "sandbox"}
	run, out := commandRunner(t)

	add := operatorAdd{store: s, newPassword: newPassword{Name: "ada"}, Role: "finance"}
	run(add.Run, "operator  ada")
	run((&auditCheckpoint{store: s}).Run, `"sequence": 2`)
	kept := filepath.Join(dir, "checkpoint.json")
	if err := os.WriteFile(kept, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	var checkpoint access.Checkpoint
	if err := json.Unmarshal(out.Bytes(), &checkpoint); err != nil {
		t.Fatal(err)
	}

	if err := (&operatorRole{store: s, Name: "ada", Role: "viewer"}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}

	verify := &auditVerify{store: s, Checkpoint: kept}
	run(verify.Run, "4 links hold")
	run((&auditList{store: s, Limit: 10}).Run, "make operator viewer")
	run((&auditList{store: s, Site: "banana", Limit: 10}).Run, `"banana" is not the id of a site: search for it first`)
	run((&auditExport{store: s, After: 3}).Run, `{"sequence":4,`)
	run((&operatorList{store: s}).Run, "viewer")

	verify.PublicKey = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	run(verify.Run, "not signed by that key")
	verify.PublicKey = ""

	changed := checkpoint
	changed.Hash = strings.Repeat("0", 64)
	text, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}

	forged := filepath.Join(dir, "forged.json")
	if err := os.WriteFile(forged, text, 0o600); err != nil {
		t.Fatal(err)
	}

	run((&auditVerify{store: s, Checkpoint: forged}).Run, "not signed by that key, or was changed")

	// If somebody rewrites the whole chain, only the checkpoint shows it.
	rewrite(t, s)
	run((&auditVerify{store: s}).Run, "2 links hold")
	run(verify.Run, "was changed")
}

// rewrite makes the audit log another one, with hashes that fit.
func rewrite(t *testing.T, s store) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(s.Database, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	for _, statement := range []string{`DELETE FROM audit_link`, `DELETE FROM audit`, `UPDATE audit_head SET sequence = 0, hash = ''`} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}

	h, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	defer h.Close()
	if err := h.Access.Act(t.Context(), flex.AuditEntry{Who: "mallory", Act: "nothing"}, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// commandRunner returns a function that runs a command, whose output goes to the buffer, and
// checks what the command prints or fails with.
func commandRunner(t *testing.T) (run func(f func(context.Context, console) error, want string), out *bytes.Buffer) {
	t.Helper()
	out = &bytes.Buffer{}
	c := console{out: out, err: io.Discard}
	return func(f func(context.Context, console) error, want string) {
		t.Helper()
		out.Reset()
		if err := f(t.Context(), c); err != nil {
			out.WriteString(err.Error())
		}

		if !strings.Contains(out.String(), want) {
			t.Errorf("%s, want %s", out.String(), want)
		}
	}, out
}
