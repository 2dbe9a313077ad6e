package api_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/wire"
)

// TestEnvelope shows the envelope as JSON and as CSV, and refuses what there is not.
func TestEnvelope(t *testing.T) {
	h := onSQLite(t)
	r := h.ask("GET", "/grid/envelope", "")
	if r.StatusCode != 200 || strings.Count(r.body, `"least_kwh":0`) != 48 || strings.Contains(r.body, "windows") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	r = h.ask("GET", "/grid/envelope?windows=true&gsp_group=_C", "")
	if r.StatusCode != 200 || strings.Count(r.body, `"least_kwh":0`) != 48+1176 || !strings.Contains(r.body, `"gsp_group":"_C"`) {
		t.Errorf("%d %.300s", r.StatusCode, r.body)
	}

	r = h.ask("GET", "/grid/envelope?format=csv", "")
	head, _, _ := strings.Cut(r.body, "\n")
	if strings.TrimSpace(head) != "start_timestamp,end_timestamp,planned_kwh,least_kwh,most_kwh,batteries_planned_kwh,batteries_least_kwh,batteries_most_kwh,heaters_planned_kwh,heaters_least_kwh,heaters_most_kwh" || strings.Count(r.body, "\n") != 49 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	if got := r.Header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
		t.Errorf("the media type is %q", got)
	}

	h.want("GET", "/grid/envelope?group=feeder", "", 404, "")
	h.want("GET", "/grid/envelope?gsp_group=C", "", 400, "")
	h.want("GET", "/grid/envelope?format=xml", "", 422, "")
	h.want("GET", "/grid/envelope?windows=perhaps", "", 422, "")
}

// TestAhead shows a forecast as JSON and as CSV, and refuses what there is not.
func TestAhead(t *testing.T) {
	h := onSQLite(t)
	r := h.ask("GET", "/grid/ahead?half_hours=4", "")
	if r.StatusCode != 200 || !strings.Contains(r.body, `"windows":[]`) || strings.Count(r.body, `"kept":[0,0,0,0,0]`) != 3 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	r = h.ask("GET", "/grid/ahead?format=csv&gsp_group=_C", "")
	if r.StatusCode != 200 || !strings.HasPrefix(r.body, "start_timestamp,end_timestamp,kind,p50_kw") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	h.want("GET", "/grid/ahead?day=2020-01-01", "", 400, "")
	h.want("GET", "/grid/ahead?group=feeder", "", 404, "")
	h.want("GET", "/grid/ahead?half_hours=49", "", 422, "")
}

// TestOffers asks what can be offered where nothing is known, and for offers that there are not.
func TestOffers(t *testing.T) {
	h := onSQLite(t)
	noon := flex.DayAt(time.Now()).Add(1).Start().Add(12 * time.Hour)
	window := func(from, to time.Time) string {
		return `{"service":"dfs","direction":"down","start_timestamp":"` + from.Format(time.RFC3339) + `","end_timestamp":"` + to.Format(time.RFC3339) + `"}`
	}

	h.want("POST", "/grid/offers?dry_run=true", window(noon, noon.Add(time.Hour)), 200, "")
	h.want("POST", "/grid/offers", window(noon, noon.Add(time.Hour)), 409, "")
	h.want("POST", "/grid/offers", window(noon, noon), 400, "")
	h.want("POST", "/grid/offers?dry_run=true", strings.Replace(window(noon, noon.Add(time.Hour)), `{`, `{"group":"feeder",`, 1), 404, "")
	h.want("GET", "/grid/offers", "", 200, "")
	h.want("GET", "/grid/offers?limit=0", "", 422, "")
	if r := h.ask("GET", "/grid/offers?format=csv", ""); !strings.HasPrefix(r.body, "id,service,direction") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	nobody := "/grid/offers/" + flex.OfferID{1}.String() + "/accept"
	h.want("POST", nobody, `{"reason":"accepted"}`, 404, "")
	h.want("POST", nobody, `{}`, 422, "")
}

// TestAcceptOffer: an offer becomes one instruction, of no more than was offered.
func TestAcceptOffer(t *testing.T) {
	h := onSQLite(t)
	from := flex.PeriodAt(time.Now().Add(2 * time.Hour)).Start()
	o := flex.Offer{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Service: "dfs", Power: 50_000, Confidence: 90, Who: "test"}
	if err := h.server.Access.DB.Write(t.Context(), h.org.ID, func(tx *store.Tx) error { return tx.AddOffer(t.Context(), &o) }); err != nil {
		t.Fatal(err)
	}

	at := "/grid/offers/" + o.ID.String() + "/accept"
	h.want("POST", at, `{"power_kw":51,"reason":"accepted"}`, 400, "")
	h.want("POST", at+"?dry_run=true", `{"reason":"accepted"}`, 200, "")
	h.want("POST", at, `{"power_kw":20,"reason":"accepted"}`, 200, "")
	h.want("POST", at, `{"reason":"accepted"}`, 409, "")
	if r := h.ask("GET", "/grid/offers", ""); !strings.Contains(r.body, `"accepted_kw":20`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// TestProfile asks for profiles that can be drawn and that cannot, and for what there is not.
func TestProfile(t *testing.T) {
	h := onSQLite(t)
	at := time.Now().Add(3 * time.Hour).UTC().Truncate(flex.HalfHour)
	body := func(at time.Time, kwh string) string {
		return `{"start_timestamp":"` + at.Format(time.RFC3339) + `","energy_kwh":` + kwh + `}`
	}

	yes := read[wire.ProfileResponse](t, h.ask("POST", "/grid/profile?parts=true", `{"half_hours":[`+body(at, "0")+`]}`))
	if !yes.Follows || yes.Certificate != nil || len(yes.HalfHours) != 1 || !yes.HalfHours[0].StartTimestamp.Time.Equal(at) {
		t.Errorf("nothing of nobody: %+v", yes)
	}

	no := read[wire.ProfileResponse](t, h.ask("POST", "/grid/profile", `{"half_hours":[`+body(at, "0")+`,`+body(at.Add(flex.HalfHour), "2.5")+`]}`))
	if c := no.Certificate; no.Follows || c == nil || !c.TooMuch || c.AskedKWh != 2.5 || c.BoundKWh != 0 {
		t.Errorf("2.5 kWh of nobody: %+v", no)
	}

	for wrong, status := range map[string]int{
		`{"half_hours":[` + body(at, "0") + `,` + body(at, "0") + `]}`: 400,
		`{"half_hours":[` + body(at.Add(time.Minute), "0") + `]}`:      400,
		`{"half_hours":[` + body(at.Add(-4*time.Hour), "0") + `]}`:     400,
		`{"half_hours":[` + body(at.Add(48*time.Hour), "0") + `]}`:     400,
		`{"half_hours":[` + body(at, "-1") + `]}`:                      422,
		`{"half_hours":[]}`: 422,
		`{"group":"feeder","half_hours":[` + body(at, "0") + `]}`: 404,
		`{"half_hours":[` + body(at, "0") + `],"gsp_group":7}`:    422,
	} {
		h.want("POST", "/grid/profile", wrong, status, "")
	}
}

// TestInstructions previews, sends, reports and stops an instruction, and refuses what cannot be.
func TestInstructions(t *testing.T) {
	h := onSQLite(t)
	from := time.Now().Add(time.Hour).UTC().Truncate(flex.HalfHour)
	body := func(more string) string {
		return `{"start_timestamp":"` + from.Format(time.RFC3339) + `","end_timestamp":"` + from.Add(time.Hour).Format(time.RFC3339) +
			`","service":"dno","reason":"evening peak",` + more + `}`
	}

	dry := read[wire.InstructionPreview](t, h.ask("POST", "/grid/instructions?dry_run=true", body(`"change_kw":-10`)))
	if dry.Instruction.State != "previewed" || dry.Reached != 0 || dry.Why == "" || len(dry.HalfHours) != 2 || dry.HalfHours[0].AskedKWh != 5 {
		t.Errorf("a dry run: %+v", dry)
	}
	if page := read[wire.InstructionPage](t, h.ask("GET", "/grid/instructions", "")); page.NumTotal != 0 {
		t.Errorf("a dry run was kept: %+v", page)
	}

	var ids []string
	for _, target := range []string{`"change_kw":-10`, `"limit_kw":0`, `"change_kw":2.5,"unfair":true,"price_gbp_per_mwh":80`} {
		sent := read[wire.InstructionPreview](t, h.ask("POST", "/grid/instructions", body(target)))
		if sent.Instruction.State != "ordered" || !strings.HasPrefix(sent.Instruction.Who, "credential ") {
			t.Errorf("%s: %+v", target, sent.Instruction)
		}
		ids = append(ids, sent.Instruction.ID.String())
	}

	first := read[wire.InstructionPage](t, h.ask("GET", "/grid/instructions?limit=2", ""))
	last := read[wire.InstructionPage](t, h.ask("GET", "/grid/instructions?limit=2&before="+first.Next.String(), ""))
	if len(first.Instructions) != 2 || first.Instructions[0].ID.String() != ids[2] || len(last.Instructions) != 1 || !last.Next.IsZero() || last.NumTotal != 3 {
		t.Errorf("pages: %+v, %+v", first, last)
	}

	at := "/grid/instructions/" + ids[0]
	report := read[wire.InstructionReport](t, h.ask("GET", at+"?assets=true", ""))
	if len(report.HalfHours) != 4 || report.HalfHours[0].AskedKWh != -5 || report.HalfHours[2].AskedKWh != 0 || report.NumCalled != 0 {
		t.Errorf("the report: %+v", report)
	}

	csv := h.ask("GET", at+"?format=csv", "")
	head, _, _ := strings.Cut(csv.body, "\n")
	if strings.TrimSpace(head) != "start_timestamp,end_timestamp,asset_id,site_id,asked_kwh,baseline_kwh,expected_kwh,metered_kwh,short_kwh,kind,not_paid" || strings.Count(csv.body, "\n") != 5 {
		t.Errorf("%d %s", csv.StatusCode, csv.body)
	}

	for range 2 {
		if in := read[wire.Instruction](t, h.ask("POST", at+"/stop", "")); in.State != "stopped" || in.StoppedBy == "" {
			t.Errorf("stopped: %+v", in)
		}
	}
	for _, want := range []int{2, 0} {
		if n := read[wire.InstructionsStopped](t, h.ask("POST", "/grid/instructions/stop", "")).NumStopped; n != want {
			t.Errorf("%d stopped, not %d", n, want)
		}
	}

	for wrong, status := range map[string]int{
		body(`"change_kw":-10,"limit_kw":3`):                    400,
		body(`"unfair":true`):                                   400,
		body(`"change_kw":-10,"group":"feeder"`):                404,
		body(`"change_kw":"much"`):                              422,
		body(`"limit_kw":-1`):                                   422,
		`{"change_kw":-10,"service":"dno"}`:                     422,
		strings.Replace(body(`"change_kw":1`), "dno", "dso", 1): 422,
	} {
		h.want("POST", "/grid/instructions", wrong, status, "")
	}
	h.want("GET", "/grid/instructions/nothing", "", 422, "")
	h.want("GET", "/grid/instructions?limit=0", "", 422, "")
	h.want("POST", "/grid/instructions/nothing/stop", "", 422, "")
	h.want("POST", "/grid/instructions/"+nobodys+"/stop", "", 404, "")
}
