package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// without names the commands without --json, and why.
var without = map[string]string{
	"demo": "a show", "serve": "a service", "mcp": "a service", "ocpp": "a service", "mqtt": "a service", "bench worker": "a service", "bench sockets": "a service",
	"completion": "a script", "charger-password": "a line of a file", "books export": "a file of its own form",
	"payouts export":   "a file of its own form",
	"credential limit": "says nothing", "credential bind": "says nothing", "credential revoke": "says nothing", "operator role": "says nothing", "operator orgs": "says nothing",
	"operator logout": "says nothing", "operator reset-two-step": "says nothing", "operator tie": "says nothing", "operator remove": "says nothing",
	"alerts acknowledge": "says that it is done", "alerts snooze": "says that it is done", "alerts rule": "says that it is done",
	"alerts route remove": "says that it is done", "alerts route test": "says that it is done", "caps set": "says that it is done", "caps clear": "says that it is done",
	"product answer": "says nothing", "product withdraw": "says that it is done",
	"limits link": "says nothing", "limits heartbeat": "says nothing", "limits heard": "says nothing", "limits unlink": "says nothing", "limits clear": "says nothing",
	"openadr upstream remove": "says that it is done", "payouts override": "says that it is done",
}

// Every command that prints data takes --json.
func TestJSON_Everywhere(t *testing.T) {
	seen := map[string]bool{}
	for _, leaf := range parserOf(t, &commands{}).Model.Leaves(false) {
		has := false
		for _, f := range leaf.Flags {
			has = has || f.Name == "json"
		}

		why, excused := without[leaf.Path()]
		seen[leaf.Path()] = true
		switch {
		case !has && !excused:
			t.Errorf("flexd %s has no --json", leaf.Path())
		case has && excused:
			t.Errorf("flexd %s has --json, and is excused: %s", leaf.Path(), why)
		}
	}

	for path := range without {
		if !seen[path] {
			t.Errorf("there is no command flexd %s", path)
		}
	}
}

func parserOf(t *testing.T, cmds *commands) *kong.Kong {
	p, err := newParser(t.Context(), cmds, console{in: os.Stdin, out: os.Stdout, err: os.Stderr}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A flag of each type with a wrong value: the message names the flag, repeats the value, and
// says what would be right, without terms of Go.
func TestFlags_Wrong(t *testing.T) {
	t.Chdir(t.TempDir())
	count := map[string]int{}
	parser := parserOf(t, &commands{})
	for _, leaf := range parser.Model.Leaves(false) {
		line := words(exampleOf(leaf.Path()))
		if len(line) == 0 {
			line = strings.Fields(leaf.Path()) // what another command starts has no example
		}

		for _, w := range line {
			if strings.Contains(w, ".") && !strings.ContainsAny(w, "/=") {
				_ = os.WriteFile(w, nil, 0o600)
			}
		}

		for _, f := range leaf.Flags {
			typ := f.Target.Type()
			for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			if typ.Kind() == reflect.String || f.Name == "help" {
				continue
			}

			count[typ.String()]++
			if typ == reflect.TypeFor[reach]() {
				continue // "banana" is the name of a host
			}

			_, err := parser.Parse(append(slices.Clone(line), "--"+f.Name+"=banana"))
			checkWrong(t, leaf.Path(), "--"+f.Name, err)
		}
	}

	for _, typ := range []string{"float64", "int", "int64", "uint64", "bool", "time.Duration", "time.Time", "netip.Prefix", "main.poundsFlag"} {
		if count[typ] == 0 {
			t.Errorf("no flag of type %s was tried", typ)
		}
	}
}

func checkWrong(t *testing.T, path, flag string, err error) {
	if err == nil {
		t.Errorf("flexd %s %s=banana is taken", path, flag)
		return
	}

	said := err.Error()
	if !strings.Contains(said, flag) || !strings.Contains(said, "banana") {
		t.Errorf("flexd %s %s=banana: %s", path, flag, said)
	}

	right := false
	for _, w := range []string{" such as ", " as in ", "must be", "of the form", "<key>=<value>"} {
		right = right || strings.Contains(said, w)
	}
	if !right {
		t.Errorf("flexd %s %s=banana: %s: it does not say what would be right", path, flag, said)
	}

	for _, w := range []string{"strconv", "netip", "expected a", "64 bit", "2006", "(string)"} {
		if strings.Contains(said, w) {
			t.Errorf("flexd %s %s=banana: %s", path, flag, said)
		}
	}
}

// Numbers below zero are taken as they are written; wrong ones of each kind are not.
func TestFlags_Numbers(t *testing.T) {
	var cmds commands
	line := []string{"dispatch", "send", "Acme", "0197a9a7-0000-7000-8000-000000000000", "--from", "2026-01-15T17:00:00Z", "--kw", "-5.5"}
	if _, err := parserOf(t, &cmds).Parse(joinNegatives(line)); err != nil || cmds.Dispatch.Send.KW != -5.5 {
		t.Errorf("%v kW, %v", cmds.Dispatch.Send.KW, err)
	}

	for _, bad := range [][]string{
		{"audit", "list", "--limit", "1.5"}, {"audit", "list", "--limit", "99999999999999999999"}, {"audit", "list", "--limit="}, {"audit", "list", "--limit"},
		{"alerts", "snooze", "x", "--note", "y", "--for", "5"}, {"dispatch", "send", "A", "x", "--from", "2026-01-15T17:00:00Z", "--kw", "NaN"},
		{"dispatch", "send", "A", "x", "--kw", "1", "--from", "2026-01-15"}, {"org", "networks", "A", "192.0.2.1"},
	} {
		_, err := parserOf(t, &commands{}).Parse(joinNegatives(bad))
		if err == nil || !strings.Contains(err.Error(), " such as ") {
			t.Errorf("%q: %v", bad, err)
		}
	}

	kept := []string{"a", "--", "--kw", "-5"}
	if got := joinNegatives(kept); !reflect.DeepEqual(got, kept) {
		t.Errorf("%q after --", got)
	}
}

// An outcome is one JSON document, or the text.
func TestForm(t *testing.T) {
	for _, f := range []form{{false}, {true}} {
		var out bytes.Buffer
		if err := f.print(console{out: &out}, fields{"imported": 3}, "imported %d things\n", 3); err != nil {
			t.Fatal(err)
		}
		if got := json.Valid(out.Bytes()); got != f.JSON {
			t.Errorf("%v: %s", f, out.String())
		}
	}
}

// What these commands print with --json is JSON, and nothing beside it.
func TestJSON_Outcomes(t *testing.T) {
	database := freshDatabase(t)
	t.Setenv("FLEXD_DATABASE", database)
	prices := filepath.Join(t.TempDir(), "prices.csv")
	if err := os.WriteFile(prices, []byte("start,price_gbp_per_mwh\n2026-01-15T00:00:00Z,50\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, line := range []string{
		"org add Acme --username acme", "org networks Acme", "org networks Acme 192.0.2.0/24", "operator add ada", "operator password ada", "prices import " + prices,
		"endpoint set Acme --url https://example.com/{external_id}", "alerts route add night --kind webhook --to https://example.com/a",
		"audit verify", "halt why", "resume", "key reseal", "backup " + prices + ".db", "key new " + prices + ".key",
		"settle again --from 2026-01-01 --to 2026-01-02", "settle again --from 2026-01-01 --to 2026-01-02 --post",
		"books receive Acme --counterparty M --month 2026-01 --amount 1.00 --reference R",
	} {
		var out, problems bytes.Buffer
		args := strings.Fields(line)
		if args[0] != "halt" {
			args = append(args, "--json")
		}

		code := run(t.Context(), args, console{in: strings.NewReader(""), out: &out, err: &problems})
		if code != exitDone {
			t.Errorf("flexd %s: %d %s%s", line, code, out.String(), problems.String())
		} else if args[0] != "halt" && !json.Valid(out.Bytes()) {
			t.Errorf("flexd %s --json: %s", line, out.String())
		}
	}
}

// A list has as many rows as its flag --limit says, from 1 to the greatest allowed number. A
// wrong number is refused before anything is read from the store.
func TestFlags_Limit(t *testing.T) {
	most := map[string]int{"dispatch list": dispatchLimitMax, "audit list": actLimitMax}
	tried := 0
	parser := parserOf(t, &commands{})
	for _, leaf := range parser.Model.Leaves(false) {
		if !slices.ContainsFunc(leaf.Flags, func(f *kong.Flag) bool { return f.Name == "limit" }) {
			continue
		}

		tried++
		last := cmp.Or(most[leaf.Path()], listLimitMax)

		for limit, isRight := range map[int]bool{-3: false, -1: false, 0: false, 1: true, last: true, last + 1: false} {
			for _, flag := range [][]string{{fmt.Sprintf("--limit=%d", limit)}, {"--limit", strconv.Itoa(limit)}} {
				line := append(words(exampleOf(leaf.Path())), flag...)

				_, err := parser.Parse(joinNegatives(line))
				if isRight != (err == nil) {
					t.Errorf("flexd %q: %v", line, err)
				}
				if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("from 1 to %d", last)) {
					t.Errorf("flexd %q: %v", line, err)
				}
			}
		}
	}

	if tried < 9 {
		t.Errorf("%d commands with --limit", tried)
	}
}
