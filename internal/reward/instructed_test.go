package reward_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// call has an instruction call the asset now, in a span, for less use if watts is below zero.
func (y *fixture) call(t *testing.T, span flex.Span, gbp float64, watts flex.Watts) (id flex.InstructionID) {
	t.Helper()
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		in := flex.Instruction{
			Span: span, Change: watts, Service: "dfs", Price: flex.FromGBPPerMWh(gbp), Reason: "peak", Who: "Ann",
		}
		if err := tx.AddInstruction(ctx, &in); err != nil {
			return err
		}
		id = in.ID
		steps := []flex.Step{{Span: span}}
		return tx.AddCalled(ctx, in.ID, []store.Called{{AssetID: y.asset, SiteID: y.site, Power: 7400, Baseline: steps, Expected: steps}})
	})
	return id
}

// An instruction's price stands in for the market's where it called the asset for what it did, by
// the time of each half-hour; then the event's life is that of any other.
func TestInstructed_Settled(t *testing.T) {
	const (
		market   = "2025-02-03 35-36 -1632 Wh est 408000"
		paid     = "2025-02-03 35-36 -1632 Wh est 3753375" // 801 Wh at 3000, 831 Wh at 1625
		stopped  = "2025-02-03 35-36 -1632 Wh est 1509375" // 801 Wh at 1625, 831 Wh at 250
		expected = "2025-02-03 35-36 est 17112500 missing 2"
	)

	for _, tt := range []struct {
		name  string
		gbp   float64
		watts flex.Watts
		after func(t *testing.T, y *fixture, id flex.InstructionID, monday flex.Day)
		want  string
		money string

		sources string
	}{
		{name: "paid", gbp: 3000, watts: -7400, want: paid, money: "flex event 188p", sources: "instruction test"},
		{name: "no price is said", watts: -7400, want: market, money: "flex event 20p", sources: "test"},
		{name: "for more use", gbp: 3000, watts: 7400, want: market, money: "flex event 20p", sources: "test"},
		{name: "stopped", gbp: 3000, watts: -7400, want: stopped, money: "flex event 75p", sources: "instruction test", after: func(t *testing.T, y *fixture, id flex.InstructionID, monday flex.Day) {
			y.now = monday.Period(35).Start().Add(15 * time.Minute)
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.StopInstruction(ctx, id, "Bob")
				return err
			})
		}},
		{name: "let go", gbp: 3000, watts: -7400, want: stopped, money: "flex event 75p", sources: "instruction test", after: func(t *testing.T, y *fixture, id flex.InstructionID, monday flex.Day) {
			y.now = monday.Period(35).Start().Add(15 * time.Minute)

			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.ReleaseCalled(ctx, id, []flex.AssetID{y.asset})
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) {
				y, monday, v := pausedMonday(t, url)
				id := y.call(t, flex.Span{From: monday.Period(35).Start(), To: monday.Period(36).Start().Add(15 * time.Minute)}, tt.gbp, tt.watts)
				if tt.after != nil {
					tt.after(t, y, id, monday)
				}

				y.now = monday.Period(36).End()
				if got := y.events(t); tt.want == paid && got != expected {
					t.Errorf("before its readings: %s, want %s", got, expected)
				}
				y.kwh(t, monday, v.Metered)
				if got := y.events(t); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if got := y.history(t); got != tt.money {
					t.Errorf("credited %s, want %s", got, tt.money)
				}

				// Instructions are forgotten before money is: what was found of them stays.
				y.exec(t, `DELETE FROM called_asset`)
				y.now = y.now.Add(time.Hour)
				y.kwh(t, monday, map[string]string{"36": "0.190"})
				if got := y.history(t); got != tt.money {
					t.Errorf("before the correction is settled: %s", got)
				}

				y.events(t)
				if got := y.history(t); tt.want == paid && got != "flex event 188p, correction -8p" { // 100 Wh at 1625, half of it
					t.Errorf("corrected: %s", got)
				}
				_, prices, err := y.service.FlexEvents(t.Context(), y.org, y.site)
				if err != nil {
					t.Fatal(err)
				}

				for _, ps := range prices {
					var sources []string
					for _, p := range ps {
						sources = append(sources, p.Source)
					}
					if got := strings.Join(sources, " "); got != tt.sources {
						t.Errorf("priced by %s", got)
					}
				}

				runs, err := y.service.Runs(t.Context(), y.org, 1)
				if err != nil {
					t.Fatal(err)
				}
				again, err := y.service.Resettle(t.Context(), y.org, reward.Resettlement{Site: y.site, From: monday, To: monday})
				if err != nil || again.Hash != runs[0].Hash {
					t.Errorf("settled again from inputs %s, then from %s: %v", again.Hash, runs[0].Hash, err)
				}
			})
		})
	}
}
