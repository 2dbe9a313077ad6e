package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"unicode/utf8"

	"flexd/sim"
)

// TestDemo plays the evening as fast as possible. Every case is named when it begins and in
// the final summary, with what is missing if a need cannot be met. The lines fit a terminal.
func TestDemo(t *testing.T) {
	var out bytes.Buffer
	d := demo{Listen: "127.0.0.1:0", Speed: speedMax, Once: true}
	before := nextEvening()
	if err := d.Run(t.Context(), console{out: &out, err: io.Discard}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	evening, balance, _ := strings.Cut(out.String(), "The morning's balance")
	for name, said := range map[string]string{"leaf": "Cheapest hours", "zoe": "Maximise", "kona": "Unmet need", "ioniq": "Peak allowed",
		"mini": "Charge now", "fiat": "Flaky charger", "van": "Limited pause"} {
		if !strings.Contains(evening, said+":") || !strings.Contains(balance, said) {
			t.Errorf("%s is not said to be a case of %s", name, said)
		}
	}

	for _, want := range []string{"is to pause", "trips", "asks to charge at once", "and is paid", "revises its prices", "◄ a new profile"} {
		if !strings.Contains(evening, want) {
			t.Errorf("nobody %s", want)
		}
	}
	if !strings.Contains(balance, " kWh short\n") { // 60 kWh wanted, six off-peak hours
		t.Error("the need that cannot be met is not said to be short")
	}

	// The saving of a night is shown on the day on which its cars were plugged in, and the
	// night ends on the next.
	_, link, _ := strings.Cut(balance, "/console/past?day=")
	if day, _, _ := strings.Cut(link, "\n"); day != before.String() && day != nextEvening().String() {
		t.Errorf("the balance leads to the fleet's past of %q, not of the day on which the cars came", day)
	}

	for line := range strings.Lines(out.String()) {
		if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > width && !strings.Contains(line, sim.Attribution) {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// An operator who opens the demo to a network gets the warning that everybody can log in.
func TestDemo_Reachable(t *testing.T) {
	for address, warned := range map[string]bool{"127.0.0.1": false, "::1": false, "0.0.0.0": true, "192.0.2.1": true} {
		var errs bytes.Buffer
		warnReachable(console{err: &errs}, &net.TCPAddr{IP: net.ParseIP(address), Port: 8080})
		if strings.Contains(errs.String(), "warning") != warned {
			t.Errorf("%s: %q", address, &errs)
		}
	}
}
