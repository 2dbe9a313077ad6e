package delivery_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// step is one thing that happens to a store.
type step struct {
	what  string
	asset int
	wait  time.Duration
}

// Whatever happens (schedules replaced at any moment, cars unplugged, answers lost, slow,
// failing or refusing, two processes, one of them dead), the client never gets an older
// schedule after a newer one, a retry is the same message, nothing is sent for a car after
// it was unplugged, and in the end every newest schedule has arrived.
func TestPush_NeverBackwards(t *testing.T) {
	const assets = 3
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		f.Value.Set(strconv.Itoa(30 / scale)) // a tenth of a second each; more with -rapid.checks
		defer f.Value.Set(f.DefValue)
	}

	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{
				what:  rapid.SampledFrom([]string{"plan", "plan", "plan", "unplug", "wait", "wait", "ok", "500", "400", "hang", "slow", "drop", "dead"}).Draw(rt, "what"),
				asset: rapid.IntRange(0, assets-1).Draw(rt, "asset"),
				wait:  time.Duration(rapid.SampledFrom([]int{0, 1, 40, 900, 4_000, 9_000, 16_000, 70_000}).Draw(rt, "ms")) * time.Millisecond,
			}
		}), 5, 40).Draw(rt, "script")

		processes := rapid.IntRange(1, 2).Draw(rt, "processes")
		var faults []string
		synctest.Test(t, func(t *testing.T) {
			h := open(t, storetest.SQLite(t))
			faults = h.play(script, processes, h.chargers(assets))
		})

		if len(faults) > 0 {
			rt.Fatalf("%v", faults)
		}
	})
}

// play lives through the script and returns what went wrong.
func (h *fixture) play(script []step, processes int, assets []flex.AssetID) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	e := h.endpoint(nil)
	ctx := context.Background()
	for range processes {
		defer h.work(h.newService())()
	}

	newest := map[flex.AssetID]flex.EventID{}
	unplugged := map[string]time.Duration{} // by the id of what must not be sent any more
	for _, s := range script {
		a := assets[s.asset]
		switch s.what {
		case "plan":
			newest[a] = h.plan(1000*time.Hour, a)[0]

		case "unplug":
			if id, ok := newest[a]; ok {
				h.unplug(a)
				unplugged[id.String()] = time.Since(h.start)
				delete(newest, a)
			}

		case "ok":
			e.say(nil)

		case "500", "400":
			e.say(status(map[string]int{"500": 500, "400": 400}[s.what]))

		case "hang":
			e.say(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })

		case "slow":
			e.say(func(http.ResponseWriter, *http.Request) { time.Sleep(8 * time.Second) })

		case "drop":
			e.say(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

		case "dead":
			if _, err := h.db.ClaimPushes(ctx, h.Org, store.ClaimOrder{Name: flex.ScheduleEndpoint, Holder: 99, Most: 2, Lease: 30 * time.Second}); err != nil {
				fault("claim: %v", err)
			}
		}

		time.Sleep(s.wait)
	}

	e.say(nil)
	h.plan(1000*time.Hour, assets[0]) // wakes the workers, whose period is long
	for range 30 {
		h.service.DispatchDue(ctx)
		time.Sleep(time.Minute)
	}

	defer h.service.Close()
	delete(newest, assets[0])
	last, until, body := map[string]int64{}, map[string]time.Duration{}, map[string]string{}
	for _, g := range e.all() {
		if g.generation < last[g.asset] {
			fault("%s: generation %d after %d", g.asset, g.generation, last[g.asset])
		}

		if g.after < until[g.asset] {
			fault("%s: generation %d left while %d was under way", g.asset, g.generation, last[g.asset])
		}

		last[g.asset], until[g.asset] = g.generation, g.until
		if b, again := body[g.id]; again && b != g.body {
			fault("%s: another body", g.id)
		}

		body[g.id] = g.body
		if end, ok := unplugged[g.id]; ok && g.after > end {
			fault("%s was sent %v after its car was unplugged", g.id, g.after-end)
		}
	}

	for a, id := range newest {
		if s := h.state(id); s != flex.DeliveryAccepted && s != flex.DeliveryRejected {
			fault("%s: the newest schedule is %s", a, s)
		}
	}

	return faults
}

// A schedule that is made at the moment at which its predecessor is recorded goes out at
// once: it is claimed before its dispatcher has heard that the predecessor's turn is over.
func TestPush_MadeWhileTheLastIsRecorded(t *testing.T) {
	each(t, func(h *fixture) {
		const schedules = 1000 / scale
		car, came := h.chargers(1)[0], make(chan int64, schedules)
		h.endpoint(func(_ http.ResponseWriter, r *http.Request) {
			generation, _ := strconv.ParseInt(r.Header.Get("Flexd-Generation"), 10, 64)
			came <- generation
		})

		defer h.work(h.newService())()
		for n := range int64(schedules) {
			h.plan(1000*time.Hour, car)
			planned := time.Now()
			for <-came <= n {
			}

			if waited := time.Since(planned); waited > time.Second {
				h.Fatalf("schedule %d waited for %v", n+1, waited)
			}
		}
	})
}
