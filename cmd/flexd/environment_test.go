package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnvironment: a database that was made for one environment refuses the commands of the
// other.
func TestEnvironment(t *testing.T) {
	for made, other := range map[string]string{"sandbox": "production", "production": "sandbox"} {
		t.Run(made, func(t *testing.T) {
			flexd := commandLineOf(t, freshDatabase(t))
			if code, said := flexd("org add Acme --username acme --environment " + made); code != exitDone {
				t.Fatalf("%d %s", code, said)
			}

			for _, line := range []string{
				"doctor", "org list", "caps show --org Acme", "org add Other --username other", "serve --listen 127.0.0.1:0", "migrate", "migrate --dry-run", "key persons",
			} {
				code, said := flexd(line + " --environment " + other)
				if code != exitFailed || !strings.Contains(said, "of the "+made+" environment") {
					t.Errorf("flexd %s: %d %s", line, code, said)
				}
			}

			if code, said := flexd("org list --environment " + made); code != exitDone {
				t.Errorf("%d %s", code, said)
			}
		})
	}
}

// TestEnvironment_Unknown: a database without a recorded purpose may be used for any, until
// its clock is advanced. After that it is only the sandbox's.
func TestEnvironment_Unknown(t *testing.T) {
	database := freshDatabase(t)
	flexd := commandLineOf(t, database)
	h, err := store{Database: database, Environment: "sandbox"}.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	defer h.Close()
	org, err := h.DB.AddOrg(t.Context(), "Acme")
	if err != nil {
		t.Fatal(err)
	}

	opens := func(environment string, want int) {
		t.Helper()
		if code, said := flexd("org list --environment " + environment); code != want {
			t.Errorf("as %s: %d %s", environment, code, said)
		}
	}

	opens("production", exitDone)
	opens("sandbox", exitDone)
	if err := h.Advance(t.Context(), org.ID, h.DB.Now().AddDate(0, 0, 1)); err != nil {
		t.Fatal(err)
	}

	opens("production", exitFailed)
	opens("sandbox", exitDone)
}

// TestEnvironment_Import: a database gets the environment of the organisation that is
// imported.
func TestEnvironment_Import(t *testing.T) {
	flexd := commandLineOf(t, freshDatabase(t))
	if code, said := flexd("org add Acme --username acme --environment sandbox"); code != exitDone {
		t.Fatalf("%d %s", code, said)
	}

	var exported, failed bytes.Buffer
	words := []string{"export", "--organisation", "Acme", "--environment", "sandbox"}
	if code := run(t.Context(), words, console{in: strings.NewReader(""), out: &exported, err: &failed}); code != exitDone {
		t.Fatalf("%d %s", code, failed.String())
	}

	file := filepath.Join(t.TempDir(), "acme.json")
	if err := os.WriteFile(file, exported.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	flexd = commandLineOf(t, freshDatabase(t))
	if code, said := flexd("import " + file + " --environment sandbox"); code != exitDone {
		t.Fatalf("%d %s", code, said)
	}
	if code, said := flexd("org list"); code != exitFailed || !strings.Contains(said, "of the sandbox environment") {
		t.Errorf("as production: %d %s", code, said)
	}
}
