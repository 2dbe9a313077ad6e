package main

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestObserve_Profiles: profiles are answered at the address that is asked for, until the end.
func TestObserve_Profiles(t *testing.T) {
	var printed bytes.Buffer
	stop, err := observe{DebugListen: "127.0.0.1:0", TracesShare: 1}.begin(t.Context(), console{out: io.Discard, err: &printed})
	if err != nil {
		t.Fatal(err)
	}

	at := regexp.MustCompile(`http://\S+`).FindString(printed.String())
	answer, err := http.Get(at + "goroutine?debug=1") //nolint:noctx // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); !strings.Contains(string(body), "goroutine profile") {
		t.Errorf("%s answers %d %.100s", at, answer.StatusCode, body)
	}

	stop()
}

// TestObserve_Refused: settings that would expose the process to others, or that mean nothing,
// are refused before anything begins.
func TestObserve_Refused(t *testing.T) {
	for want, o := range map[string]observe{
		"ask for no password":       {DebugListen: "0.0.0.0:0"},
		"is not an address":         {DebugListen: "6060"},
		"not the URL of a":          {Traces: "localhost:4318"},
		"a number from 0 to 1":      {TracesShare: 1.5},
		"a time such as 500ms, or ": {SlowStatement: -time.Second},
	} {
		_, err := o.begin(t.Context(), console{out: io.Discard, err: io.Discard})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
