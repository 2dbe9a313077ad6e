package crash

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/store/storetest"
)

// Two processes on one PostgreSQL share the pushes, and none comes twice or after a newer one.
// Then one is killed under load: the other finishes, nothing is lost, and still nothing comes
// out of order.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	a, e := newService(t, url), newEndpoint(t)
	cars := a.chargers(8, e)
	b := a.second()
	b.start()
	both := []*service{a, b}

	for _, c := range cars {
		if err := a.client(4).PlugIn(t.Context(), c.asset, client.PlugInEventRequest{}); err != nil {
			t.Fatal(err)
		}
		c.plugged = true
	}

	const most, attempts = 100, "flexd_push_attempts_total"
	for n := 0; n == 0 || a.metric(attempts) == 0 || b.metric(attempts) == 0; n++ {
		if n == most {
			t.Fatalf("of %d schedules one process pushed %v and the other %v", n*len(cars), a.metric(attempts), b.metric(attempts))
		}

		for i, c := range cars {
			c.tried++
			in := client.IntentEventRequest{Intent: client.Intent{EnergyRequiredKWh: energyOf(c.tried), ReadyBy: client.At(time.Now()), ChargingMode: client.ChargingMinimise}}
			if err := both[i%2].client(4).SetIntent(t.Context(), c.asset, in); err != nil {
				t.Fatal(err)
			}
			c.intent = c.tried
		}
	}

	for _, l := range b.lost(cars, e) {
		t.Errorf("acknowledged and lost: %s", l)
	}
	if twice, older := e.faults(); twice > 0 || older > 0 {
		t.Errorf("%d pushes came twice and %d after a newer one, and nothing had failed", twice, older)
	}
	t.Logf("one process pushed %v, the other %v", a.metric(attempts), b.metric(attempts))

	site, err := b.client(4).Asset(t.Context(), cars[0].asset)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var acked atomic.Int64
	var wg sync.WaitGroup
	for i, c := range cars {
		wg.Go(func() { both[i%2].use(ctx, c, site.SiteID, &acked) })
	}

	for acked.Load() < 50 {
		time.Sleep(time.Millisecond)
	}

	a.kill(sigKill)
	killed := time.Now()
	stop()
	wg.Wait()

	if os.Getenv("FLEXD_CRASHES") == "" { // the dead one's leases are over now, not in half a minute
		for b.metric("flexd_pushes_under_way") > 0 { // nor are those meant that the other took before
			time.Sleep(time.Millisecond)
		}
		err := storetest.Exec(t, url, `UPDATE outbox SET turn_at = 0 WHERE sending > 0 AND turn_at < $1`, killed.Add(30*time.Second).UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
	}

	for _, l := range b.lost(cars, e) {
		t.Errorf("acknowledged and lost: %s", l)
	}
	twice, older := e.faults()
	if older > 0 {
		t.Errorf("%d pushes came after a newer one", older)
	}
	b.kill(sigTerm)
	if out := b.run("verify"); !strings.Contains(string(out), "laws hold") {
		t.Errorf("verify: %s", out)
	}
	t.Logf("%d acknowledged requests, then one was killed: %d pushes came twice", acked.Load(), twice)
}

// TestTwoProcesses_PlantedFaults has a push that was taken sent again behind the service's back,
// and one come late: the harness must say so.
func TestTwoProcesses_PlantedFaults(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	s, e := newService(t, url), newEndpoint(t)
	cars := s.chargers(1, e)
	defer s.kill(sigTerm)
	if err := s.client(4).PlugIn(t.Context(), cars[0].asset, client.PlugInEventRequest{}); err != nil {
		t.Fatal(err)
	}
	if problem := s.unpushed(cars[0], e); problem != "" {
		t.Fatal(problem)
	}

	if twice, older := e.faults(); twice > 0 || older > 0 {
		t.Fatalf("%d pushes came twice and %d after a newer one, before anything was planted", twice, older)
	}

	again := func() int { twice, _ := e.faults(); return twice }
	for end := time.Now().Add(arrivalMax); again() == 0; time.Sleep(10 * time.Millisecond) {
		// It may be recorded only now, and then it is not due any more: again.
		if err := storetest.Exec(t, url, `UPDATE outbox SET turn_at = 0 WHERE turn_at IS NULL`); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("a push was sent again, and the harness saw nothing")
		}
	}

	for generation := 3; generation >= 2; generation-- {
		r, err := http.NewRequest("POST", e.URL+"/car", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Flexd-Generation", strconv.Itoa(generation))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}

	if _, older := e.faults(); older != 1 {
		t.Errorf("%d pushes are counted that came after a newer one, want 1", older)
	}
}
