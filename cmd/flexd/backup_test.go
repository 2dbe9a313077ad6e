package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

// busy adds organisations to a database, one after the other, and says which were acknowledged.
type busy struct {
	mu    sync.Mutex
	names []string
}

func (b *busy) acknowledged() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names[:len(b.names):len(b.names)]
}

// work adds organisations with a credential and an entry in the audit log until the context
// ends.
func (b *busy) work(ctx context.Context, t *testing.T, h *app.App) {
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprint("org ", i)
		err := h.Access.Act(ctx, flex.AuditEntry{Who: "load", Act: "add organisation", Subject: name}, func() error {
			_, _, err := h.Access.AddOrg(ctx, name, fmt.Sprint("user-", i), "")
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}

		b.mu.Lock()
		b.names = append(b.names, name)
		b.mu.Unlock()
	}
}

// restored opens a copy as after a restore, checks it against every rule, and returns the
// names of its organisations.
func restored(t *testing.T, file, keys string) map[string]bool {
	t.Helper()
	h, err := store{Database: "sqlite:" + file, Environment: "production", KeyFile: keys}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()

	findings, err := h.DB.Verify(t.Context())
	if err != nil || len(findings) > 0 {
		t.Errorf("%s: %v %v", file, findings, err)
	}
	broken, err := h.DB.VerifyAudit(t.Context())
	if err != nil || len(broken) > 0 {
		t.Errorf("the audit log of %s: %v %v", file, broken, err)
	}

	names := map[string]bool{}
	err = h.DB.ReadAll(t.Context(), func(all *records.All) error {
		orgs, err := all.Orgs(t.Context())
		for _, o := range orgs {
			names[o.Name] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return names
}

// TestBackup_EveryAtOnce is the restore drill under load. A flexd writes without a pause while
// copies are made of its database. Each copy opens, keeps every rule, has everything that was
// acknowledged before the copy began, and accepts further writes.
func TestBackup_EveryAtOnce(t *testing.T) {
	database := freshDatabase(t)
	keys := strings.TrimPrefix(database, "sqlite:") + ".key"
	if code, said := commandLineOf(t, database)("org add Acme --username acme"); code != exitDone {
		t.Fatal(said)
	}
	h, err := store{Database: database, Environment: "production"}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()

	ctx, stop := context.WithCancel(t.Context())
	var load busy
	var running sync.WaitGroup
	running.Go(func() { load.work(ctx, t, h) })

	folder := filepath.Join(t.TempDir(), "copies [of] it")
	said, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"backup", folder, "--every", "1s", "--keep", "2"}, console{in: strings.NewReader(""), out: out, err: os.Stderr})
	}()

	lines := bufio.NewReader(said)
	var before []string // acknowledged when the copy before was there
	for range 3 {
		line, err := lines.ReadString('\n')
		file, _, ok := strings.Cut(line, " holds a consistent copy")
		if err != nil || !ok {
			t.Fatalf("%q %v", line, err)
		}

		now := load.acknowledged()
		names := restored(t, file, keys)
		for _, name := range before {
			if !names[name] {
				t.Errorf("%s lacks %s, which was acknowledged before", file, name)
			}
		}
		before = now
	}

	stop()
	running.Wait()
	go func() { _, _ = io.Copy(io.Discard, said) }()
	if code := <-ended; code != exitDone {
		t.Errorf("it ended with %d", code)
	}
	if len(before) == 0 {
		t.Error("nothing was written meanwhile")
	}

	if files, err := os.ReadDir(folder); err != nil || len(files) > 3 {
		t.Errorf("in the folder are %v, %v", files, err) // two, and one that this test had open
	}
}

// TestBackup_EveryEdges: settings by which no copies can be made are refused, and the partial
// copy of a killed process is removed.
func TestBackup_EveryEdges(t *testing.T) {
	run := commandLineOf(t, freshDatabase(t))
	folder := t.TempDir()
	for line, want := range map[string]string{
		"--every 999ms":           "--every is 999ms: give 1s at least",
		"--every 1s --keep 0":     "--keep is 0: give 1 to 10000",
		"--every 1s --keep 10001": "--keep is 10001: give 1 to 10000",
		"--every -1s":             "give 1s at least",
		"--keep 3":                "--keep needs --every",
	} {
		if code, said := run("backup " + folder + " " + line); code == exitDone || !strings.Contains(said, want) {
			t.Errorf("%s: %d %s", line, code, said)
		}
	}

	b := backup{File: folder, Keep: new(2)}
	for _, name := range []string{
		"flexd-20260101T000000.000Z.db", "flexd-20260102T000000.000Z.db", "flexd-20260103T000000.000Z.db",
		"flexd-20260103T000000.000Z.db.part", "flexd-monday.db", "other.db",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.dropParts(); err != nil {
		t.Fatal(err)
	}
	if err := b.deleteOld(filepath.Join(folder, "flexd-20260103T000000.000Z.db")); err != nil {
		t.Fatal(err)
	}

	// A clock that was ahead made another: the one of now stays.
	b.Keep = new(1)
	if err := b.deleteOld(filepath.Join(folder, "flexd-20260102T000000.000Z.db")); err != nil {
		t.Fatal(err)
	}

	var left []string
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); err != nil || got != "flexd-20260102T000000.000Z.db flexd-20260103T000000.000Z.db flexd-monday.db other.db" {
		t.Errorf("left are %s, %v", got, err)
	}
}

// TestBackup_OlderSchema: the copy before an upgrade can be made by the newer flexd, which
// does not open the database before it is migrated, and also by a flexd that is too old for
// the database.
func TestBackup_OlderSchema(t *testing.T) {
	database := freshDatabase(t)
	flexd := commandLineOf(t, database)
	if code, out := flexd("org add Acme --username acme"); code != exitDone {
		t.Fatal(out)
	}

	for _, schema := range []struct{ name, statement string }{
		{"older", `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`},
		{"newer", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000000, TRUE)`},
	} {
		name := schema.name
		if err := storetest.Exec(t, database, schema.statement); err != nil {
			t.Fatal(err)
		}

		copied := filepath.Join(t.TempDir(), name+".db")
		if code, out := flexd("org list"); code != exitFailed {
			t.Errorf("%s: it is opened: %s", name, out)
		}
		if code, out := flexd("backup " + copied); code != exitDone || !strings.Contains(out, "consistent copy") {
			t.Errorf("%s: %d %s", name, code, out)
		}
		if n, err := records.CountOrgs(t.Context(), "sqlite:"+copied); n != 1 || err != nil {
			t.Errorf("%s: the copy has %d organisations: %v", name, n, err)
		}
	}
}
