package store_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// refused writes an organisation and wants it refused as unavailable, and the trouble told of.
func refused(t *testing.T, db *store.DB, name, what string) {
	t.Helper()
	err := db.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddOrg(t.Context(), name)
		return err
	})
	wantTrouble(t, db, err, what)
}

// wantTrouble wants an error to be that of an unavailable database, and the trouble told of.
func wantTrouble(t *testing.T, db *store.DB, err error, what string) {
	t.Helper()
	if flex.KindOf(err) != flex.Unavailable {
		t.Errorf("%v, want that the database is unavailable", err)
	}

	trouble := db.Trouble()
	if trouble == nil || !strings.Contains(trouble.What, what) {
		t.Errorf("the trouble is %v, want that %s", trouble, what)
	}
}

func run(t *testing.T, db *store.DB, statement string) {
	t.Helper()
	err := db.WriteAll(t.Context(), func(all *store.All) error {
		return all.Run(t.Context(), statement)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func addOrg(t *testing.T, db *store.DB, name string) {
	t.Helper()
	err := db.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddOrg(t.Context(), name)
		return err
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// A SQLite file that may not grow refuses writes as a full disk does; reads go on, and writes do
// once there is room. It is told of for a quarter of an hour.
func TestTrouble_Full(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	db := storetest.Open(t, "sqlite:"+filepath.Join(t.TempDir(), "f.db"), store.Options{Now: func() time.Time { return now }})
	addOrg(t, db, "before")
	if db.Trouble() != nil {
		t.Errorf("a trouble before any: %v", db.Trouble())
	}

	run(t, db, "PRAGMA max_page_count = 1") // as many as there are
	for range 3 {
		refused(t, db, strings.Repeat("much ", 20_000), "its disk is full")
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("read while the disk is full: %v", err)
	}

	run(t, db, "PRAGMA max_page_count = 1000000000")
	addOrg(t, db, "after")
	now = now.Add(15 * time.Minute)
	if db.Trouble() == nil {
		t.Error("it is forgotten too soon")
	}
	now = now.Add(time.Microsecond)
	if db.Trouble() != nil {
		t.Errorf("it is told of for too long: %v", db.Trouble())
	}
}

// A write on a full disk shares its commit with one before it that needs no room. SQLite rolls both
// back: both say that the database is unavailable, and both can be done once there is room.
func TestTrouble_FullBeside(t *testing.T) {
	db := storetest.Open(t, "sqlite:"+filepath.Join(t.TempDir(), "f.db"), store.Options{})
	addOrg(t, db, "before")
	run(t, db, "PRAGMA max_page_count = 1")

	both := func() (first, second error) {
		beside := make(chan error, 1)
		first = db.WriteAll(t.Context(), func(all *store.All) error {
			go func() {
				beside <- db.WriteAll(t.Context(), func(all *store.All) error {
					_, err := all.AddOrg(t.Context(), strings.Repeat("much ", 20_000))
					return err
				})
			}()
			for store.QueuedWrites(db) == 0 {
				runtime.Gosched()
			}

			return all.Run(t.Context(), `UPDATE org SET name = 'beside'`)
		})

		return first, <-beside
	}

	var first, second error
	for first == nil { // they share no commit if the second one comes late
		first, second = both()
	}

	wantTrouble(t, db, first, "its disk is full")
	wantTrouble(t, db, second, "its disk is full")

	run(t, db, "PRAGMA max_page_count = 1000000000")
	if first, second = both(); first != nil || second != nil {
		t.Errorf("once there is room: %v, %v", first, second)
	}
}

// A SQLite file whose pages were overwritten is told of until it is opened anew, and refused then.
func TestTrouble_Damaged(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "f.db")
	open := func(now func() time.Time) *store.DB {
		db, err := store.Open(t.Context(), "sqlite:"+file, store.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}

	before := open(nil)
	addOrg(t, before, "before")
	if err := before.Close(); err != nil { // all of it is in the file now
		t.Fatal(err)
	}
	db := open(func() time.Time { return now })
	defer db.Close()

	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Seek(0, 2)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := f.WriteAt([]byte(strings.Repeat("noise ", int(size)/6)), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	refused(t, db, "during", "damaged")
	now = now.Add(24 * time.Hour)
	if trouble := db.Trouble(); trouble == nil || !trouble.Damaged {
		t.Errorf("a day later the trouble is %v", trouble)
	}

	if _, err := store.Open(t.Context(), "sqlite:"+file, store.Options{}); err == nil {
		t.Error("a damaged file was opened")
	}
}

// What PostgreSQL says of itself is told of by what it is, and over when it is.
func TestTrouble_PostgreSQL(t *testing.T) {
	db := storetest.Open(t, storetest.Postgres(t), store.Options{})

	for code, what := range map[string]string{
		"53100": "its disk is full",
		"58030": "its disk fails",
		"25006": "nothing can be written",
		"53300": "no further connection",
	} {
		err := db.WriteAll(t.Context(), func(all *store.All) error {
			return all.Run(t.Context(), `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '`+code+`'; END $$`)
		})
		wantTrouble(t, db, err, what)
		addOrg(t, db, "after "+code)
	}

	// a fault of the program is none of the database
	before := *db.Trouble()
	err := db.WriteAll(t.Context(), func(all *store.All) error {
		return all.Run(t.Context(), `SELECT 1 / 0`)
	})
	if flex.KindOf(err) == flex.Unavailable || *db.Trouble() != before {
		t.Errorf("a division by zero: %v, %v", err, db.Trouble())
	}
}
