package main

import (
	"context"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/grid"
)

// evidenceCommand is `flexd evidence`.
type evidenceCommand struct {
	ofOrg
	From   string `help:"The first day, in London." required:"" placeholder:"YYYY-MM-DD"`
	To     string `help:"The last day, in London; the first one if it is not given." placeholder:"YYYY-MM-DD"`
	Format string `help:"text is a summary, json has everything, html is a page to print." enum:"text,json,html" default:"text"`
	JSON   bool   `help:"The same as --format json." name:"json"`
}

// Run prints the records of how an organisation's fleet was controlled.
func (o *evidenceCommand) Run(ctx context.Context, c console) error {
	from, err := optionalDay("--from", o.From)
	if err != nil {
		return err
	}

	to := from
	if o.To != "" {
		to, err = optionalDay("--to", o.To)
		if err != nil {
			return err
		}
	}

	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	found, err := h.Grid.Evidence(ctx, org.ID, flex.Span{
		From: from.Start(),
		To:   to.Add(1).Start(),
	})
	if err != nil {
		return err
	}

	e := evidenceOf(found)
	if o.JSON || o.Format == "json" {
		return c.json(e)
	}

	if o.Format == "html" {
		return evidencePage.Execute(c.out, e)
	}

	return e.print(c)
}

// evidence is the evidence as it is printed: powers in kW, energies in kWh, instants as RFC
// 3339.
type evidence struct {
	Organisation string                `json:"organisation"`
	From         time.Time             `json:"from"`
	To           time.Time             `json:"to"`
	MadeAt       time.Time             `json:"made_at"`
	ClockAhead   int64                 `json:"clock_ahead_seconds,omitzero"` // of the true clock, by which halts and stops are
	Hours        []evidenceHour        `json:"steered_hours"`
	Steps        []evidenceStep        `json:"largest_steps"`
	Needs        evidenceNeeds         `json:"needs"`
	Acts         []evidenceAct         `json:"halts_and_stops"`
	Offers       evidenceOffers        `json:"offers"`
	Instructions []evidenceInstruction `json:"instructions"`
	Records      []evidenceRecords     `json:"records"`
	Operators    []evidenceOperator    `json:"operators"`
	Credentials  []evidenceCredential  `json:"credentials"`
}

type evidenceHour struct {
	From       time.Time `json:"from"`
	GSPGroup   string    `json:"gsp_group"`
	PlannedKWh float64   `json:"planned_kwh"`
	MeteredKWh float64   `json:"metered_kwh"`
}

type evidenceStep struct {
	GSPGroup string    `json:"gsp_group"` // "all" for every one
	Minute   time.Time `json:"minute"`
	ChangeKW float64   `json:"change_kw"`
}

type evidenceNeeds struct {
	Stays     int              `json:"stays"`
	Unplanned int              `json:"without_schedule"`
	LeftEarly int              `json:"left_before_ready_by"`
	Missed    int              `json:"missed"`
	Why       map[string]int   `json:"missed_by_reason"`
	List      []evidenceMissed `json:"largest"`
}

type evidenceMissed struct {
	Asset    string    `json:"external_id"`
	ReadyBy  time.Time `json:"ready_by"`
	NeedKWh  float64   `json:"need_kwh"`
	ShortKWh float64   `json:"short_kwh"`
	Why      string    `json:"reason"`
}

type evidenceAct struct {
	At      time.Time `json:"at"`
	Who     string    `json:"who"`
	Act     string    `json:"act"`
	Subject string    `json:"subject,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	Outcome string    `json:"outcome"`
}

type evidenceOffers struct {
	Judged int `json:"judged"`
	Kept   int `json:"kept"`
}

type evidenceInstruction struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Goal      string    `json:"goal"`
	Service   string    `json:"service"`
	Who       string    `json:"who"`
	GSPGroup  string    `json:"gsp_group,omitempty"`
	StoppedAt time.Time `json:"stopped_at,omitzero"`
}

type evidenceRecords struct {
	Kind   string    `json:"kind"`
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
}

type evidenceOperator struct {
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	TwoStep bool      `json:"two_step"`
	Since   time.Time `json:"since"`
}

type evidenceCredential struct {
	Username string      `json:"username"`
	Roles    []flex.Role `json:"roles"`
	Since    time.Time   `json:"since"`
	UsedAt   time.Time   `json:"used_at,omitzero"`
	Expires  time.Time   `json:"expires_at,omitzero"`
}

// evidenceOf converts the evidence to printed units. No list is null.
func evidenceOf(f *grid.Evidence) *evidence {
	return &evidence{
		Organisation: f.Org,
		From:         f.Span.From.UTC(),
		To:           f.Span.To.UTC(),
		MadeAt:       f.At.UTC(),
		ClockAhead:   int64(f.Ahead / time.Second),

		Hours: each(f.Hours, evidenceHourOf),
		Steps: each(f.Steps, evidenceStepOf),
		Needs: evidenceNeedsOf(&f.Needs),
		Acts: each(f.Acts, func(a grid.EvidenceAct) evidenceAct {
			return evidenceAct(a)
		}),
		Offers: evidenceOffers{f.Offers, f.OffersKept},

		Instructions: each(f.Instructions, evidenceInstructionOf),
		Records: each(f.Records, func(x grid.RecordExtent) evidenceRecords {
			return evidenceRecords(x)
		}),
		Operators: each(f.Operators, func(o grid.EvidenceOperator) evidenceOperator {
			return evidenceOperator(o)
		}),
		Credentials: each(f.Credentials, func(k grid.EvidenceCredential) evidenceCredential {
			return evidenceCredential(k)
		}),
	}
}

func evidenceHourOf(h grid.SteeredHour) evidenceHour {
	return evidenceHour{
		From:       h.From.UTC(),
		GSPGroup:   h.Region,
		PlannedKWh: h.Planned.KWh(),
		MeteredKWh: h.Metered.KWh(),
	}
}

func evidenceStepOf(s grid.PowerStep) evidenceStep {
	return evidenceStep{
		GSPGroup: s.Region,
		Minute:   s.At,
		ChangeKW: s.Change.KW(),
	}
}

func evidenceNeedsOf(n *grid.Needs) evidenceNeeds {
	return evidenceNeeds{
		Stays:     n.Stays,
		Unplanned: n.Unplanned,
		LeftEarly: n.LeftEarly,
		Missed:    n.Missed,
		Why:       n.Why,
		List:      each(n.List, evidenceMissedOf),
	}
}

func evidenceMissedOf(m grid.MissedNeed) evidenceMissed {
	return evidenceMissed{
		Asset:    m.Asset,
		ReadyBy:  m.ReadyBy.UTC(),
		NeedKWh:  m.Need.KWh(),
		ShortKWh: m.Short.KWh(),
		Why:      m.Why,
	}
}

func evidenceInstructionOf(i grid.EvidenceInstruction) evidenceInstruction {
	return evidenceInstruction{
		From:      i.Span.From.UTC(),
		To:        i.Span.To.UTC(),
		Goal:      i.Goal,
		Service:   i.Service,
		Who:       i.Who,
		GSPGroup:  i.Region,
		StoppedAt: i.StoppedAt,
	}
}

// each returns the results of fn for each item; never nil.
func each[T, U any](items []T, fn func(T) U) []U {
	converted := make([]U, len(items))
	for i, item := range items {
		converted[i] = fn(item)
	}

	return converted
}

// print prints the summary.
func (e *evidence) print(c console) error {
	planned, metered := 0.0, 0.0
	for _, h := range e.Hours {
		planned += h.PlannedKWh
		metered += h.MeteredKWh
	}

	fmt.Fprintf(
		c.out,
		"%s, %s to %s\n\n",
		e.Organisation,
		e.From.Format(time.RFC3339),
		e.To.Format(time.RFC3339),
	)

	fmt.Fprintf(
		c.out,
		"planned %.1f kWh, metered %.1f kWh, in %d hours of GSP groups\n",
		planned,
		metered,
		len(e.Hours),
	)

	for _, s := range e.Steps {
		fmt.Fprintf(
			c.out,
			"largest change within a minute, %s: %+.1f kW at %s\n",
			groupName(s.GSPGroup),
			s.ChangeKW,
			s.Minute.Format(time.RFC3339),
		)
	}

	e.printNeeds(c)
	fmt.Fprintf(
		c.out,
		"offers: %d of %d kept; instructions: %d; halts, their ends and stops: %d\n",
		e.Offers.Kept,
		e.Offers.Judged,
		len(e.Instructions),
		len(e.Acts),
	)

	if e.ClockAhead != 0 {
		fmt.Fprintf(
			c.out,
			"halts and stops are by the true clock, which the organisation's is %v ahead of\n",
			time.Duration(e.ClockAhead)*time.Second,
		)
	}

	fmt.Fprintf(
		c.out,
		"access: %d operators, %d credentials\n",
		len(e.Operators),
		len(e.Credentials),
	)

	fmt.Fprintln(c.out, "everything: --format json, or html to print")

	return nil
}

// printNeeds prints how many needs were met, by plan.
func (e *evidence) printNeeds(c console) {
	n := &e.Needs
	fmt.Fprintf(
		c.out,
		"needs: %d with a schedule, %d missed by plan, %d left before their time, %d stays without a schedule\n",
		n.Stays,
		n.Missed,
		n.LeftEarly,
		n.Unplanned,
	)

	for _, reason := range slices.Sorted(maps.Keys(n.Why)) {
		fmt.Fprintf(c.out, "  for want of %s: %d\n", reason, n.Why[reason])
	}
}

// groupName is a GSP group as it is printed.
func groupName(group string) string {
	if group == "" {
		return "no GSP group"
	}

	return group
}

var evidencePage = template.Must(template.New("evidence").Funcs(template.FuncMap{
	"kw":    func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"group": groupName,
	"at": func(t time.Time) string {
		if t.IsZero() {
			return "–"
		}
		return t.UTC().Format("2006-01-02 15:04 UTC")
	},
}).Parse(`<!doctype html>
<html lang="en-GB"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Evidence: {{.Organisation}}</title>
<style>body{font:14px/1.4 sans-serif;margin:2rem;max-width:60rem}table{border-collapse:collapse;margin:.5rem 0 1rem}th,td{text-align:left;vertical-align:top;padding:.2rem .6rem;border-bottom:1px solid #ccc}td.n{text-align:right}@media print{tr{break-inside:avoid}}</style>
<h1>{{.Organisation}}: how the fleet was steered</h1>
<p>{{at .From}} to {{at .To}}, made from the records at {{at .MadeAt}}.</p>
<h2>Largest change of planned power within a minute</h2>
<table><tr><th>GSP group<th>When<th>Change, kW</tr>{{range .Steps}}<tr><td>{{group .GSPGroup}}<td>{{at .Minute}}<td class="n">{{kw .ChangeKW}}</tr>{{end}}</table>
<h2>Needs</h2>
<p>{{.Needs.Stays}} stays with a need and a schedule; {{.Needs.Missed}} missed by plan, {{.Needs.LeftEarly}} left before their time. {{.Needs.Unplanned}} stays had no schedule.</p>
{{with .Needs.List}}<table><tr><th>Asset<th>Ready by<th>Need, kWh<th>Short, kWh<th>For want of</tr>{{range .}}<tr><td>{{.Asset}}<td>{{at .ReadyBy}}<td class="n">{{kw .NeedKWh}}<td class="n">{{kw .ShortKWh}}<td>{{.Why}}</tr>{{end}}</table>{{end}}
<h2>Halts, their ends and stopped instructions</h2>
{{if .ClockAhead}}<p>By the true clock, which the organisation's sandbox clock is {{.ClockAhead}} s ahead of. Listed is what may lie in the period.</p>
{{end}}{{with .Acts}}<table><tr><th>When<th>Who<th>What<th>Why<th>Outcome</tr>{{range .}}<tr><td>{{at .At}}<td>{{.Who}}<td>{{.Act}} {{.Subject}}<td>{{.Detail}}<td>{{.Outcome}}</tr>{{end}}</table>{{else}}<p>None.</p>{{end}}
<h2>Offers and instructions</h2>
<p>{{.Offers.Kept}} of {{.Offers.Judged}} offers kept.</p>
{{with .Instructions}}<table><tr><th>From<th>To<th>What<th>Service<th>Who<th>Stopped</tr>{{range .}}<tr><td>{{at .From}}<td>{{at .To}}<td>{{.Goal}}<td>{{.Service}}<td>{{.Who}}<td>{{at .StoppedAt}}</tr>{{end}}</table>{{end}}
<h2>Records</h2>
<table><tr><th>Kind<th>Oldest<th>Newest</tr>{{range .Records}}<tr><td>{{.Kind}}<td>{{at .Oldest}}<td>{{at .Newest}}</tr>{{end}}</table>
<h2>Access</h2>
<table><tr><th>Operator<th>Role<th>Second step<th>Since</tr>{{range .Operators}}<tr><td>{{.Name}}<td>{{.Role}}<td>{{if .TwoStep}}yes{{else}}no{{end}}<td>{{at .Since}}</tr>{{end}}</table>
<table><tr><th>Credential<th>Roles<th>Since<th>Last used<th>Ends</tr>{{range .Credentials}}<tr><td>{{.Username}}<td>{{range .Roles}}{{.}} {{end}}<td>{{at .Since}}<td>{{at .UsedAt}}<td>{{at .Expires}}</tr>{{end}}</table>
<h2>Steered energy by hour</h2>
<table><tr><th>Hour<th>GSP group<th>Planned, kWh<th>Metered, kWh</tr>{{range .Hours}}<tr><td>{{at .From}}<td>{{group .GSPGroup}}<td class="n">{{kw .PlannedKWh}}<td class="n">{{kw .MeteredKWh}}</tr>{{end}}</table>
</html>
`))
