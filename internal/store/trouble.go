package store

import (
	"context"
	"strings"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// troubleFor is how long a trouble is reported after it last occurred: while nobody writes,
// nobody knows whether it is over.
const troubleFor = 15 * time.Minute

// Trouble is what keeps the database from doing its work.
type Trouble struct {
	What    string    // such as "its disk is full"
	Damaged bool      // it is over only once the database was mended and this process started again
	Since   time.Time // of this kind, by the process's own clock
	At      time.Time // the latest time
}

// The troubles that both engines can have.
const (
	diskFull     = "its disk is full"
	diskFails    = "its disk fails"
	readAlone    = "nothing can be written to it"
	noConnection = "it takes no further connection"
	noSession    = "its pooler has no connection to it left"
	damaged      = "its files are damaged"
)

// troubles remembers the latest trouble.
type troubles struct {
	mu     sync.Mutex
	latest Trouble
}

// Trouble returns what keeps the database from doing its work, met by this process within the last
// quarter of an hour, or nil.
func (db *DB) Trouble() *Trouble {
	db.troubles.mu.Lock()
	defer db.troubles.mu.Unlock()

	t := db.troubles.latest
	if t.What == "" || !t.Damaged && db.now().Sub(t.At) > troubleFor {
		return nil
	}

	return &t
}

// TryToWrite writes a row and takes it away in one transaction, which nobody sees: a database that is full, or may
// only be read, answers every question and keeps nothing.
func (db *DB) TryToWrite(ctx context.Context) error {
	return db.WriteAll(ctx, func(all *All) error {
		row := RejectedPrice{
			Source: "flexd",
			Reason: "try to write",
			First:  all.Now(),
		}

		err := all.SetRejectedPrices(ctx, row.Source, []RejectedPrice{row})
		if err != nil {
			return err
		}

		return all.SetRejectedPrices(ctx, row.Source, nil)
	})
}

// noteTrouble remembers an error that says what keeps the database from its work, and logs the first
// of each.
func (db *DB) noteTrouble(err error) {
	what := sqliteTrouble(err)
	if db.sqlite == nil {
		what = postgresTrouble(err)
	}
	if what == "" {
		return
	}

	now := db.now()
	db.troubles.mu.Lock()
	t := &db.troubles.latest
	begins := t.What != what || now.Sub(t.At) > troubleFor
	known := t.Damaged
	if begins && !known {
		*t = Trouble{What: what, Damaged: what == damaged, Since: now}
	}
	t.At = now
	db.troubles.mu.Unlock()

	if begins && !known {
		db.log.Error("the database does not do its work: "+what, "err", err)
	}
}

func sqliteTrouble(err error) string {
	switch sqliteCode(err) & 0xff {
	case sqlite3.SQLITE_FULL:
		return diskFull
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return diskFails
	case sqlite3.SQLITE_READONLY:
		return readAlone
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return damaged
	}

	return ""
}

func postgresTrouble(err error) string {
	if poolerFull(err) {
		return noSession
	}

	switch c := postgresCode(err); {
	case c == "53100":
		return diskFull
	case strings.HasPrefix(c, "58"):
		return diskFails
	case c == "25006":
		return readAlone
	case c == "53300":
		return noConnection
	case c == "XX001", c == "XX002":
		return damaged
	}

	return ""
}
