package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A copy taken while others write opens, keeps every law and holds what was there before.
func TestBackup_WhileWriting(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	for i := range 50 {
		if _, err := db.AddOrg(t.Context(), fmt.Sprint("before ", i)); err != nil {
			t.Fatal(err)
		}
	}

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)

		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				if _, err := db.AddOrg(t.Context(), fmt.Sprint("during ", i)); err != nil {
					t.Error(err)
				}
			}
		}
	}()

	file := filepath.Join(t.TempDir(), "copy.db")
	err := db.Backup(t.Context(), file)
	close(stop)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), file); flex.KindOf(err) != flex.Conflict {
		t.Errorf("a file that exists was written over: %v", err)
	}

	twin := storetest.Open(t, "sqlite:"+file, store.Options{})
	err = twin.ReadAll(t.Context(), func(all *store.All) error {
		orgs, err := all.Orgs(t.Context())
		if len(orgs) < 50 {
			t.Errorf("the copy holds %d organisations", len(orgs))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMode shows that a new database, its journals and its copies are their owner's alone.
func TestMode(t *testing.T) {
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	if _, err := db.AddOrg(t.Context(), "Acme"); err != nil {
		t.Fatal(err)
	}
	file := strings.TrimPrefix(url, "sqlite:")
	if err := db.Backup(t.Context(), file+".copy"); err != nil {
		t.Fatal(err)
	}

	for _, suffix := range []string{"", "-wal", "-shm", ".copy"} {
		if info, err := os.Stat(file + suffix); err != nil || info.Mode() != 0o600 {
			t.Errorf("flexd.db%s: %v %v", suffix, info, err)
		}
	}
}

// TestBackup_Stopped: of a copy that was not made whole nothing is left, and it can be made
// again under its name.
func TestBackup_Stopped(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	file := filepath.Join(t.TempDir(), "copy.db")
	stopped, stop := context.WithCancel(t.Context())
	stop()

	if err := db.Backup(stopped, file); err == nil {
		t.Error("it was made")
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("of what was not made there is a file: %v", err)
	}
	if err := db.Backup(t.Context(), file); err != nil {
		t.Error(err)
	}
}
