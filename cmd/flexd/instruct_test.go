package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	records "flexd/internal/store"
)

// TestInstruct previews, sends, lists, reports and stops an instruction.
func TestInstruct(t *testing.T) {
	flexd := commandLineOf(t, freshDatabase(t))
	if code, out := flexd("org add acme --username acme"); code != exitDone {
		t.Fatal(out)
	}

	from := time.Now().Add(time.Hour).UTC().Truncate(time.Minute)
	during := " --from " + from.Format(time.RFC3339) + " --to " + from.Add(time.Hour).Format(time.RFC3339)
	wants := func(line, want string, code int) (out string) {
		t.Helper()
		got, out := flexd(line)
		if got != code || !strings.Contains(out, want) {
			t.Errorf("%s: %d %.600s", line, got, out)
		}
		return out
	}

	wants("instruct preview --change-kw=-10"+during, "previewed", exitDone)
	wants("instruct preview --change-kw=-10 --json"+during, `"state": "previewed"`, exitDone)
	wants("instruct preview --change-kw=-10 --limit-kw=2"+during, "can't be used together", exitUsage)
	wants("instruct preview"+during, "a change against the plan, or a limit", exitUsage)
	wants("instruct preview --change-kw=-10 --group feeder"+during, `no group is named "feeder"`, exitFailed)
	long := " --from " + from.Format(time.RFC3339) + " --to " + from.Add(25*time.Hour).Format(time.RFC3339)
	wants("instruct preview --change-kw=-10"+long, "an instruction lasts 1 day at most, and ends within 2 days", exitUsage)

	half := from.Truncate(time.Hour).Add(time.Hour)
	window := " --from " + half.Format(time.RFC3339) + " --to " + half.Add(30*time.Minute).Format(time.RFC3339)
	wants("offer stack"+window, "nothing can be offered: 0 days of plug sessions", exitDone)
	wants("offer make --confidence 91"+window, "a confidence is one of [50 80 90 95 99], and not 91", exitUsage)
	wants("fleet ahead", "nothing is forecast: 0 days of plug sessions", exitDone)
	wants("limits link x --fallback-kw 2000000 --after 15m", "the fallback is 2000000 kW: it should be 0 to 1000000", exitUsage)
	wants("limits link x --fallback-kw 20 --after 15m", "GET /caps, or flexd caps show, lists them", exitFailed)
	wants("instruct list", "TARGET", exitDone)

	out := wants("instruct send --limit-kw=10 --service dno --reason peak"+during, "ordered", exitDone)
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(out)
	wants("instruct list", "not above 10 kW", exitDone)
	wants("instruct list --json", `"reason": "peak"`, exitDone)
	wants("instruct report "+id, "THEIR BASELINE", exitDone)
	wants("instruct report --json "+id, `"num_called": 0`, exitDone)
	wants("instruct report --format csv "+id, "expected_kwh,metered_kwh", exitDone)

	wants("instruct stop", "name one instruction, or give --all", exitUsage)
	wants("instruct stop "+id, "is stopped", exitDone)
	wants("instruct stop --json "+id, `"state": "stopped"`, exitDone)
	wants("instruct stop --all", "0 instructions are stopped", exitDone)
}

// TestInstructCalls sets how often a site may be called, shows it and ends it.
func TestInstructCalls(t *testing.T) {
	s := newRepairStory(t)
	site := s.site.String()
	s.wants(s.run(0, "instruct", "calls", site), "agreed: any number of calls; called: 0 today, 0 this month")
	s.wants(s.run(0, "instruct", "calls", site, "--per-day", "1", "--per-month", "5"), "agreed: 1 a day, 5 a month; called: 0 today")
	s.wants(s.run(0, "instruct", "calls", site, "--json"), `"per_month": 5`)
	s.wants(s.run(exitUsage, "instruct", "calls", site, "--per-day", "1001"), "1001 calls are not 0 to 1000")
	s.wants(s.run(exitUsage, "instruct", "calls", site, "--per-day", "1", "--no-limit"), "can't be used together")
	s.wants(s.run(0, "instruct", "calls", site, "--per-month", "0"), "agreed: 1 a day, 0 a month")
	s.wants(s.run(0, "instruct", "calls", site, "--no-limit", "--json"), `"agreed_calls": null`)
	s.wants(s.run(0, "audit", "list", "--json"), "1 a day, 5 a month")
}

// A dispatch whose report cannot be read is printed nevertheless, without the report.
func TestDispatchSend_NoReport(t *testing.T) {
	queued := []records.Dispatch{{ID: flex.EventID{1}, Instruction: flex.InstructionID{2}}}
	for _, asJSON := range []bool{false, true} {
		var out strings.Builder
		o := dispatchSend{form: form{JSON: asJSON}}
		if err := o.printQueued(console{out: &out}, queued, nil); err != nil {
			t.Fatal(err)
		}

		said := out.String()
		for _, want := range []string{queued[0].ID.String(), queued[0].Instruction.String()} {
			if !strings.Contains(said, want) || strings.Contains(said, "short") {
				t.Errorf("%s: %s", want, said)
			}
		}
	}
}

// TestDispatchSend previews a dispatch of a battery, sends it, and previews another one that
// would replace it.
func TestDispatchSend(t *testing.T) {
	s := newRepairStory(t)
	battery := s.seed.Asset(s.seed.Site(flex.FullScheduleMethod), flex.Battery, 5000).String()
	from := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Hour).Format(time.RFC3339) // in an hour at the earliest, and not in a moment
	line := []string{"dispatch", "send", "seeded", battery, "--kw=-2", "--from", from, "--for", "1h"}
	preview := append(line[:len(line):len(line)], "--dry-run")

	out := s.run(0, preview...)
	s.wants(out, "previewed: 1 of 1 callable assets called, 50 % of the target is counted on\n")
	s.wants(out, "CHANGE KWH")
	if strings.Contains(out, "earlier dispatches") || strings.Contains(out, "COST") {
		t.Error(out)
	}

	asJSON := s.run(0, append(preview, "--json")...)
	s.wants(asJSON, `"state": "previewed"`)
	if strings.Contains(asJSON, "cost_pence") {
		t.Errorf("a cost that is not known is printed: %s", asJSON)
	}
	if n := s.seed.Count(`SELECT count(*) FROM dispatch`) + s.seed.Count(`SELECT count(*) FROM instruction`); n != 0 {
		t.Errorf("a preview leaves %d records", n)
	}
	s.wants(s.run(exitUsage, "dispatch", "send", "seeded", battery, "--kw=-9", "--from", from, "--dry-run"), "kW")
	s.wants(s.run(exitUsage, append(preview, "--market", "nosuch")...), "wholesale")

	named := regexp.MustCompile(`"?instruction(?:_id":)? "?([0-9a-f]{8}-[0-9a-f-]{27})`)
	sent := named.FindStringSubmatch(s.run(0, line...))
	if len(sent) != 2 {
		t.Fatal("the instruction is not printed")
	}
	s.wants(s.run(0, "instruct", "report", sent[1]), "THEIR BASELINE")
	s.wants(s.run(0, preview...), "It replaces earlier dispatches of 1 asset\n")
	s.wants(s.run(0, "audit", "list", "--json"), `"-2 kW of 1 asset"`)

	another := s.seed.Asset(s.seed.Site(flex.FullScheduleMethod), flex.Battery, 5000).String()
	both := named.FindAllStringSubmatch(s.run(0, "dispatch", "send", "seeded", battery, another, "--kw=-1", "--from", from, "--for", "1h", "--json"), -1)
	if len(both) != 2 || both[0][1] != both[1][1] || both[0][1] == sent[1] {
		t.Errorf("two events of one instruction, other than %s: %v", sent[1], both)
	}
}
