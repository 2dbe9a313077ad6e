package control_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/wire"
)

// block is one block of a schedule as a client writes it.
type block = wire.ChargingScheduleBlock

type pauseVector struct {
	Request struct {
		Blocks []block `json:"charging_schedule"`
	}
	Expected struct {
		Blocks []block `json:"modified_charging_schedule"`
	} `json:"expected_response"`
}

func (h *fixture) ask(blocks ...block) []block {
	h.Helper()
	out, err := h.plugIn(h.Org, h.asset, blocks)
	if err != nil {
		h.Fatal(err)
	}
	return out
}

// plugIn sends a schedule, and returns the answer as a client reads it.
func (h *fixture) plugIn(org flex.OrgID, asset flex.AssetID, schedule []block) ([]block, error) {
	blocks := make([]control.Block, len(schedule))
	for i, b := range schedule {
		span, err := b.Span()
		if err != nil {
			return nil, err
		}
		blocks[i] = control.Block{Span: span, Start: b.StartTimestamp, End: b.EndTimestamp}
	}

	parts, err := h.service.PlugInSchedule(h.Context(), org, asset, blocks)
	if err != nil {
		return nil, err
	}

	out := make([]block, len(parts))
	for i, p := range parts {
		out[i] = schedule[p.Block].Part(p.Span)
	}

	return out, nil
}

func (h *fixture) pauses() (found []store.Pause) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		found, err = tx.Pauses(h.Context(), h.site, flex.Span{From: at("2000-01-01T00:00:00Z"), To: at("2100-01-01T00:00:00Z")})
		return err
	})
	if err != nil {
		h.Fatal(err)
	}

	return found
}

// dearAt returns a night of £50/MWh with one more expensive half-hour, from 22:00 on.
func dearAt(slot int, price float64) []float64 {
	ps := slices.Repeat([]float64{50}, 18)
	ps[slot] = price
	return ps
}

func TestPlugInSchedule_Vectors(t *testing.T) {
	each(t, "2025-06-27T21:50:00Z", func(h *fixture) {
		var v pauseVector
		h.vector("plug-in-schedule-no-opportunity", &v)

		if got := h.ask(v.Request.Blocks...); !reflect.DeepEqual(got, v.Expected.Blocks) {
			t.Errorf("without prices: %v", got)
		}

		h.publish("2025-06-27T22:00:00Z", slices.Repeat([]float64{-5}, 18)...)

		if got := h.ask(v.Request.Blocks...); !reflect.DeepEqual(got, v.Expected.Blocks) {
			t.Errorf("at negative prices: %v", got)
		}

		if n := len(h.pauses()); n != 0 {
			t.Errorf("%d pauses recorded", n)
		}

		h.publish("2025-06-27T22:00:00Z", dearAt(6, 90)...)
		h.vector("plug-in-schedule-30-minute", &v)

		for range 2 { // asked again, it is answered again, and recorded once
			if got := h.ask(v.Request.Blocks...); !reflect.DeepEqual(got, v.Expected.Blocks) {
				t.Errorf("got %v, want %v", got, v.Expected.Blocks)
			}
		}

		p := h.pauses()
		if len(p) != 1 || !p[0].From.Equal(at("2025-06-28T01:00:00Z")) || p[0].Len() != flex.HalfHour || p[0].Saved != 333_000 {
			t.Errorf("recorded: %v", p) // 3.7 kWh at £90/MWh
		}
	})
}

func TestPlugInSchedule_Styles(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end string
		want       string // the pause from 01:00 to 01:30 UTC
	}{
		{"offset zero", "2025-06-27T22:00:00+00:00", "2025-06-28T06:00:00+00:00", "2025-06-28T01:00:00+00:00 2025-06-28T01:30:00+00:00"},
		{"Z", "2025-06-27T22:00:00Z", "2025-06-28T06:00:00Z", "2025-06-28T01:00:00Z 2025-06-28T01:30:00Z"},
		{"milliseconds", "2025-06-27T22:00:00.000Z", "2025-06-28T06:00:00.000Z", "2025-06-28T01:00:00.000Z 2025-06-28T01:30:00.000Z"},
		{"summer time", "2025-06-27T23:00:00+01:00", "2025-06-28T07:00:00+01:00", "2025-06-28T02:00:00+01:00 2025-06-28T02:30:00+01:00"},
		{"west", "2025-06-27T12:30:00-0930", "2025-06-27T20:30:00-0930", "2025-06-27T15:30:00-0930 2025-06-27T16:00:00-0930"},
		{"no offset", "2025-06-27T22:00:00", "2025-06-28T06:00:00", "2025-06-28T01:00:00 2025-06-28T01:30:00"},
		{"no seconds, a blank", "2025-06-27 22:00Z", "2025-06-28 06:00Z", "2025-06-28 01:00Z 2025-06-28 01:30Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one(t, "2025-06-27T21:50:00Z", func(h *fixture) {
				h.publish("2025-06-27T22:00:00Z", dearAt(6, 90)...)

				cut := strings.Split(c.want, " 2025") // a style may hold a blank
				want := []block{{StartTimestamp: c.start, EndTimestamp: cut[0]}, {StartTimestamp: "2025" + cut[1], EndTimestamp: c.end}}
				if got := h.ask(block{StartTimestamp: c.start, EndTimestamp: c.end}); !reflect.DeepEqual(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		})
	}
}

func TestPlugInSchedule_Placement(t *testing.T) {
	nan := math.NaN()
	span := func(a, b string) block {
		return block{StartTimestamp: "2025-06-2" + a + ":00Z", EndTimestamp: "2025-06-2" + b + ":00Z"}
	}

	for _, c := range []struct {
		name   string
		now    string
		prices []float64 // from 22:00
		ask    []block
		want   []block
	}{
		{"no blocks", "21:50", dearAt(6, 90), nil, []block{}},
		{"shorter than a pause", "21:50", dearAt(0, 90), []block{span("7T22:00", "7T22:29")}, []block{span("7T22:00", "7T22:29")}},
		{"just a pause long", "21:50", dearAt(0, 90), []block{span("7T22:00", "7T22:30")}, []block{span("7T22:00", "7T22:30")}},
		{"two blocks, just a pause long together", "21:50", dearAt(0, 90), []block{span("7T22:00", "7T22:15"), span("7T23:00", "7T23:15")},
			[]block{span("7T22:00", "7T22:15"), span("7T23:00", "7T23:15")}},
		{"a minute more than a pause", "21:50", dearAt(0, 90), []block{span("7T22:00", "7T22:31")}, []block{span("7T22:30", "7T22:31")}},
		{"no whole settlement period", "21:50", dearAt(1, 90), []block{span("7T22:10", "7T22:50")}, []block{span("7T22:10", "7T22:50")}},
		{"one whole settlement period", "21:50", dearAt(0, 90), []block{span("7T22:10", "7T23:10")}, []block{span("7T22:10", "7T22:30"), span("7T23:00", "7T23:10")}},
		{"only half an hour is left", "23:00", dearAt(2, 90), []block{span("7T22:00", "7T23:30")}, []block{span("7T22:00", "7T23:30")}},
		{"dearest at the start", "21:50", dearAt(0, 90), []block{span("7T22:00", "8T02:00")}, []block{span("7T22:30", "8T02:00")}},
		{"dearest has begun", "22:01", dearAt(0, 90), []block{span("7T22:00", "7T23:30")},
			// the next settlement period, though 22:01 to 22:31 would save more
			[]block{span("7T22:00", "7T22:30"), span("7T23:00", "7T23:30")}},
		{"all past", "23:59", dearAt(0, 90), []block{span("7T22:00", "7T23:30")}, []block{span("7T22:00", "7T23:30")}},
		{"dearest is between blocks", "21:50", dearAt(2, 90), []block{span("7T22:00", "7T23:00"), span("7T23:30", "8T00:30")},
			[]block{span("7T22:30", "7T23:00"), span("7T23:30", "8T00:30")}},
		{"unsorted", "21:50", dearAt(5, 90), []block{span("8T00:00", "8T01:30"), span("7T22:00", "7T23:00")},
			[]block{span("8T00:00", "8T00:30"), span("8T01:00", "8T01:30"), span("7T22:00", "7T23:00")}},
		{"touching blocks", "21:50", dearAt(2, 90), []block{span("7T22:00", "7T23:15"), span("7T23:15", "8T01:00")},
			[]block{span("7T22:30", "7T23:15"), span("7T23:15", "8T01:00")}},
		{"missing price is no place", "21:50", []float64{50, nan, nan, 40}, []block{span("7T22:15", "7T23:45")}, []block{span("7T22:15", "7T23:45")}},
		{"not worth 2 p", "21:50", slices.Repeat([]float64{5.4}, 8), []block{span("7T22:00", "8T00:00")}, []block{span("7T22:00", "8T00:00")}},
		{"worth 2 p", "21:50", slices.Repeat([]float64{5.5}, 8), []block{span("7T22:00", "8T00:00")}, []block{span("7T22:30", "8T00:00")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one(t, "2025-06-27T"+c.now+":00Z", func(h *fixture) {
				h.publish("2025-06-27T22:00:00Z", c.prices...)

				if got := h.ask(c.ask...); !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		})
	}
}

// A schedule that practically never ends is paused like any other: time beyond the known
// prices costs no computing.
func TestPlugInSchedule_Endless(t *testing.T) {
	one(t, "2025-06-27T21:50:00Z", func(h *fixture) {
		h.publish("2025-06-27T22:00:00Z", dearAt(6, 90)...)
		start, end := "2025-06-27T22:00:00Z", "9999-12-31T23:59:59Z"

		want := []block{
			{StartTimestamp: start, EndTimestamp: "2025-06-28T01:00:00Z"},
			{StartTimestamp: "2025-06-28T01:30:00Z", EndTimestamp: end},
		}
		if got := h.ask(block{StartTimestamp: start, EndTimestamp: end}); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})

	// Behind another block too: the sum of the time ahead is more than a duration can express.
	one(t, "2025-06-27T21:50:00Z", func(h *fixture) {
		h.publish("2025-06-27T22:00:00Z", dearAt(6, 90)...)
		first := block{StartTimestamp: "2025-06-27T22:00:00Z", EndTimestamp: "2025-06-27T23:00:00Z"}
		start, end := "2025-06-28T00:00:00Z", "9999-12-31T23:59:59Z"

		want := []block{
			first,
			{StartTimestamp: start, EndTimestamp: "2025-06-28T01:00:00Z"},
			{StartTimestamp: "2025-06-28T01:30:00Z", EndTimestamp: end},
		}
		if got := h.ask(first, block{StartTimestamp: start, EndTimestamp: end}); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// After a pause enough charging remains for the energy that is known to be needed.
func TestPlugInSchedule_LeavesTheNeed(t *testing.T) {
	charge := block{StartTimestamp: "2025-06-27T22:00:00Z", EndTimestamp: "2025-06-28T00:00:00Z"} // 14.8 kWh, 11.1 with a pause
	for _, c := range []struct {
		name   string
		kwh    float64
		paused bool
	}{{"just enough", 11.1, true}, {"a watt-hour too little", 11.101, false}, {"more than the schedule holds", 40, false}} {
		t.Run(c.name, func(t *testing.T) {
			one(t, "2025-06-27T21:50:00Z", func(h *fixture) {
				h.publish("2025-06-27T22:00:00Z", dearAt(0, 90)...)
				h.event(control.Event{Kind: control.PlugIn, Intent: need(c.kwh, flex.Minimise)})

				got := h.ask(charge)
				if paused := got[0] != charge; paused != c.paused {
					t.Errorf("a need of %v kWh: %v", c.kwh, got)
				}
			})
		})
	}
}

// A pause of any schedule is one settlement period, completely within one of its blocks.
func TestPlugInSchedule_OneSettlementPeriod(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 9))
	one(t, "2025-06-27T21:50:00Z", func(h *fixture) {
		made := 0
		for range 200 {
			prices := make([]float64, 18)
			for i := range prices {
				prices[i] = 20 + 80*random.Float64()
			}

			h.publish("2025-06-27T22:00:00Z", prices...)
			from := at("2025-06-27T22:00:00Z").Add(time.Duration(random.IntN(7200)) * time.Second)
			to := from.Add(time.Duration(1+random.IntN(14400)) * time.Second)
			h.ask(block{StartTimestamp: from.Format(time.RFC3339), EndTimestamp: to.Format(time.RFC3339)})

			for _, p := range h.pauses() {
				made++

				if p.Len() != flex.HalfHour || p.From.Minute()%30 != 0 || p.From.Second() != 0 {
					t.Fatalf("the pause from %v to %v is no settlement period", p.From, p.To)
				}

				if p.From.Before(from) || p.To.After(to) || to.Sub(from) <= flex.HalfHour {
					t.Fatalf("the pause from %v to %v is not within %v to %v, or all of it", p.From, p.To, from, to)
				}
			}
		}

		if made < 100 {
			t.Errorf("only %d pauses were made", made)
		}
	})
}

func TestPlugInSchedule_OnePausePerPlugIn(t *testing.T) {
	each(t, "2025-06-27T21:50:00Z", func(h *fixture) {
		h.publish("2025-06-27T22:00:00Z", dearAt(0, 90)...)

		whole := block{StartTimestamp: "2025-06-27T22:00:00Z", EndTimestamp: "2025-06-28T06:00:00Z"}
		if got := h.ask(whole); got[0].StartTimestamp != "2025-06-27T22:30:00Z" {
			t.Fatalf("got %v", got)
		}

		h.goTo("2025-06-27T22:10:00Z") // the pause has begun; the user boosts

		if got := h.ask(whole); len(got) != 1 || got[0] != whole {
			t.Errorf("a second pause: %v", got)
		}

		h.publish("2025-06-28T22:00:00Z", dearAt(0, 90)...)
		h.goTo("2025-06-28T21:50:00Z")

		if got := h.ask(block{StartTimestamp: "2025-06-28T22:00:00Z", EndTimestamp: "2025-06-29T06:00:00Z"}); got[0].StartTimestamp != "2025-06-28T22:30:00Z" {
			t.Errorf("the next night: %v", got)
		}

		if n := len(h.pauses()); n != 2 {
			t.Errorf("%d pauses recorded, want 2", n)
		}

		// Each schedule's event says what was paused, or why nothing was.
		for i, want := range []string{"it is paused from 23:00 to 23:30", "the pause before began less than 12 hours ago", "it is paused from 23:00 to 23:30"} {
			if got := h.pauseTexts()[i]; !strings.Contains(got, want) {
				t.Errorf("schedule %d: %q, not %q", i, got, want)
			}
		}

		// Whoever asks for flexd's schedule hears so.
		want := "its client plans it, and sent its own at 2025-06-28T21:50:00Z; it is paused from 23:00 to 23:30"
		if _, err := h.service.Explanation(h.Context(), h.Org, h.asset); flex.KindOf(err) != flex.NotFound || !strings.Contains(err.Error(), want) {
			t.Errorf("explained as %v", err)
		}
	})
}

// TestPlugInSchedule_Excluded: a charger that an operator excluded gets its schedule back
// unchanged. The site's consent is not affected.
func TestPlugInSchedule_Excluded(t *testing.T) {
	each(t, "2025-06-27T21:50:00Z", func(h *fixture) {
		h.publish("2025-06-27T22:00:00Z", dearAt(6, 90)...)
		h.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, h.asset.Bytes())

		whole := block{StartTimestamp: "2025-06-27T22:00:00Z", EndTimestamp: "2025-06-28T06:00:00Z"}
		got, err := h.plugIn(h.Org, h.asset, []block{whole})
		if err != nil || len(got) != 1 || got[0] != whole {
			t.Errorf("got %v, %v", got, err)
		}

		if n := len(h.pauses()); n != 0 {
			t.Errorf("%d pauses recorded", n)
		}

		h.Exec(`UPDATE asset SET excluded_at = NULL WHERE id = $1`, h.asset.Bytes())
		if got := h.ask(whole); len(got) != 2 {
			t.Errorf("included again: %v", got)
		}
	})
}

// pauseTexts returns what the events of the charger's schedules say about their pauses, the
// oldest first.
func (h *fixture) pauseTexts() (texts []string) {
	h.Helper()
	p, err := h.service.Past(h.Context(), control.PastQuery{Asset: h.asset, Show: "week"})
	if err != nil {
		h.Fatal(err)
	}

	for _, e := range p.Events {
		texts = append(texts, e.PauseText())
	}
	return texts
}

func TestPlugInSchedule_Refused(t *testing.T) {
	each(t, "2025-06-27T21:50:00Z", func(h *fixture) {
		plain := h.Site(flex.FullScheduleMethod)

		fine := []block{{StartTimestamp: "2025-06-27T22:00:00Z", EndTimestamp: "2025-06-28T06:00:00Z"}}
		for _, c := range []struct {
			name   string
			asset  flex.AssetID
			blocks []block
			want   flex.Kind
		}{
			{"unknown", flex.AssetID{1}, fine, flex.NotFound},
			{"battery", h.Asset(h.site, flex.Battery, 5000), fine, flex.NotFound},
			{"no consent", h.Asset(plain, flex.Charger, 7400), fine, flex.Forbidden},
			{"empty", h.asset, []block{{StartTimestamp: fine[0].StartTimestamp, EndTimestamp: fine[0].StartTimestamp}}, flex.Malformed},
			{"backwards", h.asset, []block{{StartTimestamp: fine[0].EndTimestamp, EndTimestamp: fine[0].StartTimestamp}}, flex.Malformed},
			{"overlap", h.asset, []block{fine[0], {StartTimestamp: "2025-06-28T05:59:59Z", EndTimestamp: "2025-06-28T07:00:00Z"}}, flex.Malformed},
			{"too many", h.asset, slices.Repeat(fine, control.BlocksMax+1), flex.Malformed},
		} {
			if _, err := h.plugIn(h.Org, c.asset, c.blocks); flex.KindOf(err) != c.want {
				t.Errorf("%s: %v", c.name, err)
			}
		}

		var most []block
		for i := range control.BlocksMax {
			from := at("2025-06-28T00:00:00Z").Add(time.Duration(i) * time.Minute)
			most = append(most, block{StartTimestamp: from.Format(time.RFC3339), EndTimestamp: from.Add(time.Minute).Format(time.RFC3339)})
		}

		if _, err := h.plugIn(h.Org, h.asset, most); err != nil {
			t.Errorf("%d blocks: %v", len(most), err)
		}
	})
}
