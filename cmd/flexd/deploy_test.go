package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/operations"
	"flexd/internal/store/storetest"
)

const deployFolder = "../../deploy"

// expressions returns the expressions of the rules and of the dashboard, each with its place.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	read := func(name string, into any, decode func([]byte, any) error) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(deployFolder, name))
		if err == nil {
			err = decode(b, into)
		}

		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}

	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For string
				Labels           map[string]string
				Annotations      map[string]string
			}
		}
	}

	read("prometheus/rules.yml", &rules, func(b []byte, into any) error { return yaml.Unmarshal(b, into) })
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s has no severity, or says nothing", r.Alert)
			}

			found[r.Alert] = r.Expr
		}
	}

	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}

	read("grafana/dashboards/flexd.json", &board, json.Unmarshal)
	for _, p := range board.Panels {
		for i, target := range p.Targets {
			found[fmt.Sprintf("%s %d", p.Title, i)] = target.Expr
		}
	}

	return found
}

// faultsOf returns what is wrong with an expression: brackets that do not match, metrics that
// do not exist, and labels with values that never occur.
func faultsOf(expr string, metrics map[string]bool) (faults []string) {
	var open []rune
	for _, c := range quoted.ReplaceAllString(expr, `""`) {
		switch i := strings.IndexRune("([{", c); {
		case i >= 0:
			open = append(open, []rune(")]}")[i])

		case strings.ContainsRune(")]}", c):
			if len(open) == 0 || open[len(open)-1] != c {
				return append(faults, "brackets do not match")
			}

			open = open[:len(open)-1]
		}
	}

	if len(open) > 0 {
		faults = append(faults, "brackets do not match")
	}

	names := metricName.FindAllString(expr, -1)
	if len(names) == 0 && !strings.Contains(expr, "up{") {
		faults = append(faults, "no metric")
	}

	for _, name := range names {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if !metrics[name] && !metrics[base] {
			faults = append(faults, name+" is no metric")
		}
	}

	for _, m := range kindIs.FindAllStringSubmatch(expr, -1) {
		for kind := range strings.SplitSeq(m[1], "|") {
			if !slices.Contains(operations.Kinds, operations.Kind(kind)) {
				faults = append(faults, kind+" is no kind of exception")
			}
		}
	}

	return faults
}

var (
	quoted     = regexp.MustCompile(`"[^"]*"`)
	metricName = regexp.MustCompile(`\b(flexd|process|go)_[a-z_]+`)
	kindIs     = regexp.MustCompile(`flexd_exceptions\{kind=~?"([^"]*)"`)
)

// TestDeploy compares the shipped rules and the dashboard with the metrics that exist.
func TestDeploy(t *testing.T) {
	s := &troubles{T: t, database: freshDatabase(t)}
	h := s.serve()
	defer h.Close()
	s.Seed = storetest.NewSeed(t, h.DB, s.database)
	_, program := s.browse(h)
	program("/operations/exceptions") // so that a request was answered

	metrics := map[string]bool{}
	for line := range strings.Lines(program("/metrics")) {
		if name, found := strings.CutPrefix(line, "# TYPE "); found {
			metrics[strings.Fields(name)[0]] = true
		}
	}

	described := make(chan *prometheus.Desc, 100)
	for _, c := range h.Push.Collectors() {
		c.Describe(described)
	}
	close(described)
	for d := range described {
		metrics[regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(d.String())[1]] = true
	}

	all := expressions(t)
	if len(all) < 20 {
		t.Errorf("%d expressions", len(all))
	}
	for where, expr := range all {
		for _, fault := range faultsOf(expr, metrics) {
			t.Errorf("%s: %s: %s", where, expr, fault)
		}
	}

	for planted, want := range map[string]string{
		"sum(flexd_plugged_in":                           "brackets",
		"max(flexd_pluged_in) > 0":                       "flexd_pluged_in is no metric",
		`max(flexd_exceptions{kind="halt"}) > 0`:         "halt is no kind",
		"rate(flexd_requests_total[5m]) > sum(vector(0)": "brackets",
	} {
		if got := faultsOf(planted, metrics); !strings.Contains(strings.Join(got, "; "), want) {
			t.Errorf("%s: %v, want %s", planted, got, want)
		}
	}
}

// shippedRules returns the time after which the shipped rules fire an alert, for each kind of
// exception.
func shippedRules(t *testing.T) map[operations.Kind]time.Duration {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(deployFolder, "prometheus/rules.yml"))
	if err != nil {
		t.Fatal(err)
	}

	var rules struct {
		Groups []struct {
			Rules []struct{ Expr, For string }
		}
	}

	if err := yaml.Unmarshal(b, &rules); err != nil {
		t.Fatal(err)
	}

	after := map[operations.Kind]time.Duration{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			m := kindIs.FindStringSubmatch(r.Expr)
			if m == nil {
				continue
			}

			lasts, err := time.ParseDuration(cmp.Or(r.For, "0s"))
			if err != nil {
				t.Fatal(err)
			}

			for kind := range strings.SplitSeq(m[1], "|") {
				after[operations.Kind(kind)] = lasts
			}
		}
	}

	return after
}

// TestDeploy_Defaults compares the shipped rules with flexd's own default rules: somebody who
// uses the former instead of the latter gets the same alerts after the same time.
func TestDeploy_Defaults(t *testing.T) {
	s := &troubles{T: t, database: freshDatabase(t)}
	h := s.serve()
	defer h.Close()

	own, err := h.Operations.AlertRules(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	shipped := shippedRules(t)
	for _, r := range own {
		after, there := shipped[r.Kind]
		if there != r.Enabled {
			t.Errorf("%s: a shipped rule is there: %t, flexd's own is on: %t", r.Kind, there, r.Enabled)
		}

		if there && after != r.For {
			t.Errorf("%s fires after %v by the shipped rule, and after %v by flexd's own", r.Kind, after, r.For)
		}
	}
}
