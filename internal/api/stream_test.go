package api

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A streamed answer that breaks off is logged and counted, and the client sees it break.
func TestStream_BreaksOff(t *testing.T) {
	var log lockedBuffer
	s := &Server{Access: &access.Service{DB: storetest.Open(t, storetest.SQLite(t), store.Options{})}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	s.Handler()
	recorded := make(chan struct{})
	failing := s.handle(Route{Method: http.MethodGet, Pattern: "/failing", Role: Public, handle: func(*Server, *request) (answer, error) {
		return answer{stream: func(w io.Writer) error {
			if _, err := io.WriteString(w, `{"responses":[`); err != nil {
				return err
			}

			return errors.New("the disk is full")
		}}, nil
	}})

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(recorded)
		failing.ServeHTTP(w, r)
	}))

	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError)

	response, err := http.Get(server.URL + "/failing")
	if err == nil {
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
	}

	if err == nil {
		t.Error("the client took a part of the answer for the whole")
	}

	<-recorded
	for _, words := range []string{"the disk is full", "broke off after 14 bytes", "status=500", "level=ERROR"} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("the log lacks %q: %s", words, log.String())
		}
	}
}

// A streamed answer that fails before its first byte is answered as any other failure: a client that waits for a database tries again
// when it is told to.
func TestStream_FailsAtOnce(t *testing.T) {
	s := &Server{Access: &access.Service{DB: storetest.Open(t, storetest.SQLite(t), store.Options{})}, Log: slog.New(slog.DiscardHandler)}
	s.Handler()
	failing := s.handle(Route{Method: http.MethodGet, Pattern: "/failing", Role: Public, handle: func(*Server, *request) (answer, error) {
		return answer{stream: func(io.Writer) error {
			return fmt.Errorf("keep readings: %w", flex.Fail(flex.Unavailable, "the database is not available; try again"))
		}}, nil
	}})

	for _, coding := range []string{"identity", "gzip"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/failing", nil)
		r.Header.Set("Accept-Encoding", coding)
		failing.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != http.StatusServiceUnavailable || h.Get("Retry-After") == "" || h.Get("Content-Encoding") != "" || !strings.Contains(w.Body.String(), "try again") {
			t.Errorf("%s: %d %v %s", coding, w.Code, h, w.Body)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A streamed answer is compressed for who takes that, and one that breaks off has no end.
func TestStream_Gzip(t *testing.T) {
	long := strings.Repeat(`{"accepted":true},`, 10_000)
	for name, failure := range map[string]error{"whole": nil, "broken off": errors.New("the disk is full")} {
		w := httptest.NewRecorder()
		r := &request{Request: httptest.NewRequest("POST", "/data/readings", nil)}
		r.Header.Set("Accept-Encoding", "gzip")

		n := stream(w, r, http.StatusOK, answer{stream: func(to io.Writer) error {
			_, err := io.WriteString(to, long)
			return errors.Join(err, failure)
		}})

		if n != len(long) || w.Body.Len() > n/20 || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d bytes as %d, %v", name, n, w.Body.Len(), w.Header())
		}

		z, err := gzip.NewReader(w.Body)
		if err != nil && failure == nil {
			t.Fatal(err)
		}

		var plain []byte
		if err == nil {
			plain, err = io.ReadAll(z)
		}

		if (err == nil) != (failure == nil) || failure == nil && string(plain) != long {
			t.Errorf("%s: %d bytes, %v", name, len(plain), err)
		}

		if (r.brokenOff == nil) != (failure == nil) {
			t.Errorf("%s: noted as %v", name, r.brokenOff)
		}
	}
}
