package store_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// lines is a log that tests wait for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) with(part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// patience is how long a line of the log may take on a machine that has much else to do.
const patience = time.Minute

// until calls a function again and again until something is so.
func until(t *testing.T, what string, do func(), is func() bool) {
	t.Helper()
	late := time.Now().Add(patience)
	for do(); !is(); do() {
		if time.Now().After(late) {
			t.Fatal("not so: ", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestSlowStatement: a statement that takes longer than it may is logged with how the database
// runs it, once, and without its arguments.
func TestSlowStatement(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		var log lines
		db := storetest.Open(t, url, store.Options{SlowAfter: time.Nanosecond, Log: slog.New(slog.NewTextHandler(&log, nil))})

		const mpan = "1012345678901"
		const statement = "FROM meter m WHERE m.mpan"
		ask := func() { _, _ = db.MeterByMPAN(t.Context(), mpan) }
		until(t, "the statement is logged with its plan", ask, func() bool { return len(planned(log.with(statement))) > 0 })

		ask()
		if n := len(planned(log.with(statement))); n != 1 {
			t.Errorf("it is logged %d times with its plan: %s", n, log.with(statement))
		}
		if got := log.with(mpan); len(got) != 0 {
			t.Errorf("an argument is logged: %s", got)
		}
	})
}

func planned(lines []string) (found []string) {
	for _, line := range lines {
		if strings.Contains(strings.ToUpper(line), "SCAN") || strings.Contains(strings.ToUpper(line), "SEARCH") {
			found = append(found, line)
		}
	}
	return found
}

// TestSlowStatement_Off: without a limit nothing is logged, and what is quick is not either.
func TestSlowStatement_Off(t *testing.T) {
	for _, after := range []time.Duration{0, time.Hour} {
		var log lines
		db := storetest.Open(t, storetest.SQLite(t), store.Options{SlowAfter: after, Log: slog.New(slog.NewTextHandler(&log, nil)), Environment: flex.Sandbox})
		_, _ = db.MeterByMPAN(t.Context(), "1012345678901")
		if got := log.with("slow"); len(got) > 0 {
			t.Errorf("after %s: %s", after, got)
		}
	}
}
