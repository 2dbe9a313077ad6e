package operations_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
)

// A database that is damaged is told of as an exception, also where nothing else can be read.
func TestExceptions_DatabaseFailing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.db")
	open := func() *store.DB {
		db, err := store.Open(t.Context(), "sqlite:"+file, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	if err := open().Close(); err != nil {
		t.Fatal(err)
	}

	db := open()
	defer db.Close()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}

	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(strings.Repeat("noise ", int(info.Size())/6)), 0); err != nil {
		t.Fatal(err)
	}

	service := &operations.Service{DB: db, Trouble: db.Trouble}
	found, unread, err := service.Exceptions(t.Context(), flex.OrgID{})
	if err != nil || len(found) != 1 || found[0].Kind != operations.DatabaseFailing {
		t.Fatalf("%v, %v", found, err)
	}
	if e := found[0]; e.Level != operations.Critical || !strings.Contains(e.Title, "damaged") || !strings.Contains(e.Text, "restore") {
		t.Errorf("it says %+v", e)
	}

	metrics := prometheus.NewRegistry()
	metrics.MustRegister(operations.Metrics{Service: service})
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}

	const known = 3 // the database itself, and what is known without it: jobs and prices
	if n := len(operations.Kinds) - known; len(unread) != n {
		t.Errorf("%d kinds could not be looked for, want %d: %v", len(unread), n, unread)
	}

	var series int // a 0 of any other kind would say that it is well
	for _, f := range families {
		series += len(f.GetMetric())
	}
	if series != known+1 { // and how many kinds are unread
		t.Errorf("%d series: %v", series, families)
	}
}
