package control_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

var waveSize = flag.Int("wave", 20_000, "plugged-in assets in BenchmarkWave")

// plugFleet plugs n cars in by writing what events would have left: every car at its own
// charger, with one of some tariffs, needs and powers, each planned on the prices of now.
func (h *fixture) plugFleet(n int) {
	h.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	id := func(kind byte, i int) []byte {
		v := flex.MakeID[struct{}](time.UnixMilli(int64(kind)<<32), [10]byte{6: byte(i >> 24), 7: byte(i >> 16), 8: byte(i >> 8), 9: byte(i)})
		return v[:]
	}

	now := h.micro.Load()
	asset := func(i int) []byte { return id(1, i*7919%n) } // not in the order of the sessions
	ready := at("2026-01-11T07:00:00Z").UnixMicro()
	h.Rows("asset", strings.Fields("id org_id site_id external_id type power_w created_at"), n, func(i int) []any {
		return []any{id(1, i), h.Org.Bytes(), h.site.Bytes(), fmt.Sprint("ev", i), "charger", 7400, 0}
	})

	h.Rows("session", strings.Fields("id org_id asset_id site_id number plugged_in_at ready_by generation event_id"), n, func(i int) []any {
		return []any{id(2, i), h.Org.Bytes(), asset(i), h.site.Bytes(), 1, now, ready, 1, id(3, i)}
	})

	h.Rows("schedule", strings.Fields(`event_id org_id asset_id session_id generation cause made_at from_at to_at steps ready_by
		need_wh delivered_wh count_from power_w running may_charge_peak mode off_peak zone tariff_type origins value`), n, func(i int) []any {
		need := 5000 + r.IntN(20)*1000
		seconds := (need*3600/7400 + 59) / 60 * 60
		window := int(ready-now) / 1_000_000
		off := (5*60 + 30) * 60 // the cheap hours, from midnight
		lead := window - 7*3600
		steps := fmt.Sprintf("%dx0 %dx99999 %dx0", lead, min(seconds, off), window-lead-min(seconds, off))
		tariffs := []string{"00:00-05:30", "00:00-05:30,23:30-24:00", "00:30-04:30", "00:00-07:00"}

		return []any{id(3, i), h.Org.Bytes(), asset(i), id(2, i), 1, "plug-in", now, now, ready, steps, ready,
			need, 0, now, 7400, false, false, "minimise_charging_time", tariffs[i%len(tariffs)], "Europe/London", "dual_rate", "event asset event", 0}
	})

	h.Rows("outbox", strings.Fields("subject org_id endpoint kind asset_id event_id generation queued_at expires_at accepted"), n, func(i int) []any {
		return []any{asset(i), h.Org.Bytes(), "schedule", "schedule", asset(i), id(3, i), 1, now, ready, 1}
	})

	if h.db.Engine() == "postgres" {
		h.Exec("ANALYZE") // as it would have been long since
	}
}

// BenchmarkWave measures a wave over a whole fleet: new prices, every car planned anew, and
// what changed stored with its place in the outbox. Where the night is turned around nearly
// every schedule changes, the worst case; an update moves the price of one half-hour, as the
// market mostly does.
func BenchmarkWave(b *testing.B) {
	falling, rising := slices.Repeat([]float64{60}, 26), slices.Repeat([]float64{60}, 26)
	for i := range 26 {
		falling[i], rising[i] = 100-3*float64(i), 20+3*float64(i)
	}

	updated := slices.Clone(falling)
	updated[14] += 60 // from 01:00 to 01:30

	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			h := open(b, url(b), "2026-01-10T18:00:00Z")
			h.plugFleet(*waveSize)
			b.Run("turned", func(b *testing.B) { h.waves(b, falling, rising) })
			h.wait(control.MarketInterval)
			h.publish("2026-01-10T18:00:00Z", falling...)
			h.replan()
			b.Run("update", func(b *testing.B) { h.waves(b, updated, falling) })
		})
	}
}

// waves measures waves on two sets of prices in turn.
func (h *fixture) waves(b *testing.B, prices ...[]float64) {
	var changed int
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		h.wait(control.MarketInterval)
		h.publish("2026-01-10T18:00:00Z", prices[i%len(prices)]...)
		runtime.GC()
		b.StartTimer()
		changed += h.replan()
	}

	b.StopTimer()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys)/(1<<20), "MiB-heap")
	b.ReportMetric(float64(changed)/float64(b.N), "changed/op")
	b.ReportMetric(float64(*waveSize)*float64(b.N)/b.Elapsed().Seconds(), "assets/s")
}

// BenchmarkFleet measures the same under a cap of what 40 % of the fleet draws: every car is
// planned together with all others. Each plug-in in between reads what the others draw, under that cap and under three nested
// ones beside it.
func BenchmarkFleet(b *testing.B) {
	h := open(b, storetest.SQLite(b), "2026-01-10T18:00:00Z")
	h.plugFleet(*waveSize)

	if err := h.service.SetCaps(b.Context(), h.Org, flex.Caps{Fleet: kw(7.4 * 0.4 * float64(*waveSize))}); err != nil {
		b.Fatal(err)
	}

	falling, rising := slices.Repeat([]float64{60}, 26), slices.Repeat([]float64{60}, 26)
	for i := range 26 {
		falling[i], rising[i] = 100-3*float64(i), 20+3*float64(i)
	}

	h.replan()
	b.Run("wave", func(b *testing.B) { h.waves(b, falling, rising) })
	b.Run("plug-in", h.plugIns)

	nested := flex.Caps{Fleet: kw(7.4 * 0.4 * float64(*waveSize))}
	for i, name := range []string{"station", "feeder", "street"} {
		nested.Groups = append(nested.Groups, flex.CapGroup{Name: name, Parent: []string{"", "station", "feeder"}[i], Cap: nested.Fleet})
	}
	nested.Groups[2].Sites = []flex.SiteID{h.site}
	h.setCaps(nested)
	h.replan()
	b.Run("plug-in-nested", h.plugIns)
}

// plugIns plugs a car in and out, and measures how long the plug-ins take.
func (h *fixture) plugIns(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		took = append(took, time.Since(began))
		h.event(control.Event{Kind: control.PlugOut})
	}

	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-p50")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "ms-p99")
}

// BenchmarkInstruction measures an instruction to half of a plugged-in fleet: its preview, its
// sending with the schedules of all who are called, a look at what it is brought, and its stop.
func BenchmarkInstruction(b *testing.B) {
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			h := open(b, url(b), "2026-01-10T18:00:00Z")
			h.plugFleet(*waveSize)
			h.publish("2026-01-10T18:00:00Z", slices.Repeat([]float64{60}, 26)...)
			in := flex.Instruction{
				Span: flex.Span{From: at("2026-01-11T00:00:00Z"), To: at("2026-01-11T00:30:00Z")}, Change: -flex.Watts(*waveSize * 3000), Service: "dno",
			}

			took := map[string]time.Duration{}
			timed := func(what string, do func() error) {
				begun := time.Now()
				if err := do(); err != nil {
					b.Fatal(err)
				}
				took[what] += time.Since(begun)
			}

			called := 0
			for b.Loop() {
				timed("preview", func() error {
					_, err := h.service.PreviewInstruction(b.Context(), h.Org, in)
					return err
				})
				timed("send", func() error {
					p, err := h.service.SendInstruction(b.Context(), h.Org, in)
					called += len(p.Assets)
					return err
				})

				h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL`)
				h.wait(5 * time.Second)
				timed("follow", func() error { _, err := h.service.FollowInstructions(b.Context()); return err })
				timed("stop", func() error { _, err := h.service.StopInstructions(b.Context(), h.Org, "bench"); return err })
				h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL`)
			}

			for what, t := range took {
				b.ReportMetric(float64(t.Milliseconds())/float64(b.N), what+"-ms")
			}
			b.ReportMetric(float64(called)/float64(b.N), "called")
		})
	}
}
