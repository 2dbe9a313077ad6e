package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// promtool returns the path of Prometheus's own checker. If it is not installed, the long
// campaigns unpack Debian's package.
func promtool(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("promtool"); err == nil {
		return path
	}
	if os.Getenv("FLEXD_LONG") == "" {
		t.Skip("promtool is not installed")
	}

	dir := t.TempDir()
	for _, line := range []string{"apt-get download -q prometheus", "dpkg -x $(ls prometheus_*.deb) ."} {
		c := exec.Command("sh", "-c", line)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}

	return filepath.Join(dir, "usr/bin/promtool")
}

// ruleTests runs series through the rules. A count that lasts wakes somebody after its time
// and not before, one that ends wakes nobody, and a flexd that is not scraped wakes somebody.
const ruleTests = `
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'flexd_exceptions{kind="refused"}', values: '0 188x20'}
      - {series: 'flexd_exceptions{kind="waiting"}', values: '0 3 3 0x20'}
      - {series: 'flexd_exceptions{kind="halted"}', values: '0 1x20'}
      - {series: 'flexd_exceptions_unread', values: '0 2x20'}
      - {series: 'up{job="flexd"}', values: '1x9 0x12'}
      - {series: 'flexd_background_job_last_success_timestamp_seconds{name="mail", instance="one"}', values: '0+60x20 1200x80'}
      - {series: 'flexd_background_job_period_seconds{name="mail", instance="one"}', values: '60x100'}
    alert_rule_test:
      - {eval_time: 5m, alertname: FlexdRefused, exp_alerts: []}
      - eval_time: 7m
        alertname: FlexdRefused
        exp_alerts: [{exp_labels: {severity: critical}, exp_annotations: {summary: "188 schedules were refused for good or reported as failed: their chargers are not controlled"}}]
      - {eval_time: 8m, alertname: FlexdWaiting, exp_alerts: []}
      - eval_time: 1m
        alertname: FlexdHalted
        exp_alerts: [{exp_labels: {severity: critical}, exp_annotations: {summary: "pushes are halted by an operator"}}]
      - {eval_time: 5m, alertname: FlexdExceptionsUnread, exp_alerts: []}
      - eval_time: 7m
        alertname: FlexdExceptionsUnread
        exp_alerts: [{exp_labels: {severity: critical}, exp_annotations: {summary: "flexd cannot look for 2 kinds of exceptions: whether there are any is not known"}}]
      - {eval_time: 9m, alertname: FlexdDown, exp_alerts: []}
      - eval_time: 15m
        alertname: FlexdDown
        exp_alerts: [{exp_labels: {severity: critical}, exp_annotations: {summary: "flexd does not answer the scraper"}}]
      - {eval_time: 53m, alertname: FlexdBackgroundJobLate, exp_alerts: []}
      - eval_time: 54m
        alertname: FlexdBackgroundJobLate
        exp_alerts: [{exp_labels: {severity: warning, name: mail, instance: one}, exp_annotations: {summary: "the background job mail of one has not ended a run without failing for three of its periods"}}]
`

// Prometheus's own checker accepts the shipped rules and configuration and every expression of
// the dashboard, and the rules fire when they should.
func TestDeploy_Promtool(t *testing.T) {
	tool := promtool(t)
	check := func(args ...string) (string, bool) {
		out, err := exec.Command(tool, args...).CombinedOutput()
		return string(out), err == nil
	}

	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	rules, err := os.ReadFile(filepath.Join(deployFolder, "prometheus/rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	write("rules.yml", string(rules))
	tests := write("tests.yml", ruleTests)
	board := write("board.yml", recordings(t, nil))
	planted := write("planted.yml", recordings(t, []string{"sum(rate(flexd_requests_total))"}))
	late := write("late.yml", strings.Replace(ruleTests, "'0 188x20'", "'0 0x20'", 1))

	for _, c := range []struct {
		args []string
		well bool
	}{
		{[]string{"check", "rules", filepath.Join(dir, "rules.yml")}, true},
		{[]string{"check", "config", filepath.Join(deployFolder, "prometheus/prometheus.yml")}, true},
		{[]string{"test", "rules", tests}, true},
		{[]string{"check", "rules", board}, true},
		{[]string{"check", "rules", planted}, false},
		{[]string{"test", "rules", late}, false},
	} {
		if out, well := check(c.args...); well != c.well {
			t.Errorf("promtool %v: %v\n%s", c.args, well, out)
		}
	}
}

// recordings is a file of rules that has every expression of rules and dashboard, and more.
func recordings(t *testing.T, more []string) string {
	type rule struct{ Record, Expr string }
	var all []rule
	for _, expr := range expressions(t) {
		more = append(more, expr)
	}
	for _, expr := range more {
		expr = strings.NewReplacer("$__rate_interval", "5m", "$__interval", "1m", "$__range", "1h").Replace(expr)
		all = append(all, rule{"flexd:x" + strings.Repeat("x", len(all)), expr})
	}

	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "all", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
