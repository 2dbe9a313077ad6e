package control_test

import (
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// BenchmarkHeatCalls measures an instruction to heaters, each at a site of its own: its preview, its sending with their plans, a look at what
// it brings, and its stop.
func BenchmarkHeatCalls(b *testing.B) {
	for name, heat := range map[string]string{"tank": "tank", "on and off": pumpOn, "sg ready": pumpReady, "offset": pumpMoved} {
		for _, heaters := range []int{100, 200} {
			b.Run(fmt.Sprintf("%s/%d", name, heaters), func(b *testing.B) { benchHeatCalls(b, heat, heaters) })
		}
	}
}

func benchHeatCalls(b *testing.B, heat string, heaters int) {
	h := open(b, storetest.SQLite(b), "2026-01-14T22:40:00Z")
	for range heaters {
		h.site = h.Site(flex.FullScheduleMethod)
		h.heaterHere(heat)
	}
	for h.runTanks() > 0 {
	}
	h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL`)

	in := asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -flex.Watts(heaters)*3000)
	if heat == "tank" {
		in.Span = flex.Span{From: at("2026-01-15T04:00:00Z"), To: at("2026-01-15T05:00:00Z")}
	}

	took, called := map[string]time.Duration{}, 0
	timed := func(what string, do func() error) {
		waits := h.writesBeside()
		begun := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		took[what] += time.Since(begun)
		took["others-wait-to-"+what] += waits()
	}

	for b.Loop() {
		timed("preview", func() error { _, err := h.service.PreviewInstruction(b.Context(), h.Org, in); return err })
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
	if called == 0 {
		b.Error("nothing was called: it measures nothing")
	}
}

// writesBeside writes again and again until the function that it returns is called, which says how long one had to wait at most.
func (h *fixture) writesBeside() func() time.Duration {
	done, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		most := time.Duration(0)

		for {
			begun := time.Now()
			if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.LockOrg(h.Context()) }); err != nil {
				h.Error(err)
			}

			most = max(most, time.Since(begun))
			select {
			case <-done:
				longest <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()

	return func() time.Duration { close(done); return <-longest }
}
