package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// TestPast reads an asset's session in one transaction: its schedules, why the chosen one is as
// it is, and the answer to a question.
func TestPast(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Intent: need(20, flex.Minimise), Tariff: nightTariff("Europe/London")})
		h.wait(time.Minute)
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(30, flex.Minimise)})

		p, err := h.service.Past(t.Context(), control.PastQuery{Asset: h.asset, Explain: true, Suppose: &control.Question{Need: new(flex.FromKWh(10))}})
		if err != nil {
			t.Fatal(err)
		}

		if n := len(p.Generations()); n != 2 || p.Chosen != 1 || len(p.Events) != 2 || len(p.OffPeak) == 0 {
			t.Errorf("%d generations, the chosen %d, %d events, off-peak %v", n, p.Chosen, len(p.Events), p.OffPeak)
		}
		if p.Why == nil || p.Why.Generation != 2 || p.Rate == nil || p.Compare == nil || p.Compare.Err != nil {
			t.Fatalf("why %v, rate %v, comparison %v", p.Why, p.Rate, p.Compare)
		}
		if less := p.Compare.Energy(); less > -flex.FromKWh(19) {
			t.Errorf("10 kWh in the place of 30 charge %v less", -less)
		}

		first := p.Generations()[0].EventID
		p, err = h.service.Past(t.Context(), control.PastQuery{Asset: h.asset, Show: "day", Explain: true, Chosen: first})
		if err != nil || p.Chosen != 0 || p.Why.Generation != 1 || p.Compare != nil {
			t.Errorf("the first schedule: chosen %d, %v", p.Chosen, err)
		}

		allowed := 0.0
		for _, d := range p.Planned() {
			allowed += d.KW * d.Len().Hours()
		}
		if allowed < 29 || allowed > 31 {
			t.Errorf("the schedules allow %.1f kWh while they are in force, want the newer's 30", allowed)
		}

		if _, err := h.service.Past(t.Context(), control.PastQuery{Asset: flex.AssetID{1}}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("no such asset: %v", err)
		}
	})
}

// TestDrawsOf cuts steps to a span and a power.
func TestDrawsOf(t *testing.T) {
	from := at("2026-01-10T18:00:00Z")
	steps := []flex.Step{
		{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Limit: flex.NoLimit},
		{Span: flex.Span{From: from.Add(time.Hour), To: from.Add(2 * time.Hour)}},
	}

	got := control.DrawsOf(steps, 7400, flex.Span{From: from.Add(30 * time.Minute), To: from.Add(90 * time.Minute)})
	if len(got) != 2 || got[0].KW != 7.4 || got[0].Len() != 30*time.Minute || got[1].KW != 0 || got[1].Len() != 30*time.Minute {
		t.Errorf("%v", got)
	}
}
