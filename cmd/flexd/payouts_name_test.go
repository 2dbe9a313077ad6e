package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The hook is set, tested and removed on the command line; messages say what is wrong.
func TestPayoutsName(t *testing.T) {
	b := newBookkeeping(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a-secret-of-20-chars\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := b.run(0, "payouts", "hook"); !strings.Contains(out, "no hook") {
		t.Errorf("none: %s", out)
	}

	b.run(2, "payouts", "hook", "--secret-file", secret)
	b.run(2, "payouts", "hook", "https://payee.example.com", "--none")
	b.run(2, "payouts", "hook", "https://payee.example.com")
	if out := b.run(2, "payouts", "hook", "http://payee.example.com", "--secret-file", secret); !strings.Contains(out, "https://") {
		t.Errorf("plain HTTP: %s", out)
	}

	b.run(0, "payouts", "hook", "https://payee.example.com/check", "--secret-file", secret)
	for _, shown := range []string{b.run(0, "payouts", "hook"), b.run(0, "payouts", "hook", "--json")} {
		if !strings.Contains(shown, "https://payee.example.com/check") || strings.Contains(shown, "a-secret") {
			t.Errorf("shown: %s", shown)
		}
	}

	if out := b.run(0, "payouts", "check"); out != "" {
		t.Errorf("nothing waits: %s", out)
	}
	b.run(0, "payouts", "hook", "--none")
	b.run(exitFailed, "payouts", "override", "01900000-0000-7000-8000-000000000000", "--reason", "a reason that is long enough")
}
