package delivery_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

func TestHalt(t *testing.T) {
	each(t, func(h *fixture) {
		e := h.endpoint(nil)
		other := h.newService() // as of another process
		defer h.work(h.service)()
		defer h.work(other)()
		ctx := context.Background()
		cars := h.chargers(3)
		h.plan(time.Hour, cars...)
		time.Sleep(time.Second)
		if err := other.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a firmware fault"}); err != nil {
			t.Fatal(err)
		}

		if err := h.service.Halt(ctx, delivery.HaltOrder{Operator: "bea", Reason: "the same"}); flex.KindOf(err) != flex.Conflict {
			t.Errorf("halted twice: %v", err)
		}

		old := h.plan(time.Hour, cars...)
		held := h.plan(time.Hour, cars[:2]...)
		short := h.plan(time.Minute, cars[2])
		time.Sleep(10 * time.Minute)
		if n := len(e.all()); n != 3 {
			t.Errorf("%d pushes arrived, 3 of them before the halt", n)
		}

		if err := h.service.Drain(ctx, h.Org); err != nil { // does not wait for what is held
			t.Error(err)
		}

		if err := h.service.Resume(ctx, delivery.HaltScope{}); err != nil {
			t.Fatal(err)
		}

		if err := other.Resume(ctx, delivery.HaltScope{}); flex.KindOf(err) != flex.Conflict {
			t.Errorf("resumed twice: %v", err)
		}

		time.Sleep(time.Second)
		if n := len(e.all()); n != 5 {
			t.Errorf("%d pushes arrived, the newest of two cars and nothing else after the halt", n)
		}

		for id, want := range map[flex.EventID]flex.DeliveryState{held[0]: flex.DeliveryAccepted, old[1]: flex.DeliverySuperseded, short[0]: flex.DeliveryExpired} {
			if got := h.state(id); got != want {
				t.Errorf("a push is %s, want %s", got, want)
			}
		}
	})
}

// A claim that waits for its endpoint, as another process has it, claims nothing if everything
// is halted meanwhile.
func TestHalt_ClaimedBeside(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpoint(nil)
		h.plan(time.Hour, h.chargers(1)...)
		ctx := context.Background()
		halt := func() error {
			return h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a firmware fault"})
		}

		claimed := make(chan int, 1)
		claim := func() {
			c, err := h.db.ClaimPushes(
				ctx,
				h.Org,
				store.ClaimOrder{Name: flex.ScheduleEndpoint, Holder: 7, Most: 10, Lease: 30 * time.Second},
			)
			if err != nil {
				h.Error(err)
			}
			claimed <- len(c.Pushes)
		}

		if h.db.Engine() != "postgres" {
			if err := halt(); err != nil {
				h.Fatal(err)
			}
			claim()
		} else {
			const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
			h.write(func(ctx context.Context, tx *store.Tx) error {
				if _, err := tx.LockEndpoint(ctx, flex.ScheduleEndpoint); err != nil {
					return err
				}

				go claim()
				for len(claimed) == 0 && h.Count(waiting) == 0 {
					runtime.Gosched()
				}
				return halt()
			})
		}

		if n := <-claimed; n != 0 {
			t.Errorf("%d pushes were claimed after the halt", n)
		}
	})
}

// A halt that two people end is ended by the second, within an hour of the first, whoever began it.
func TestHalt_Two(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		if err := h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a firmware fault", Two: true}); err != nil {
			t.Fatal(err)
		}

		for i, step := range []struct {
			who   string
			wait  time.Duration
			ended bool
			kind  flex.Kind
		}{
			{"ada", 0, false, flex.Internal}, {"ada", 0, false, flex.Conflict}, {"bea", delivery.ResumeAskedFor, false, flex.Internal},
			{"bea", 0, false, flex.Conflict}, {"cid", time.Minute, true, flex.Internal}, {"cid", 0, false, flex.Conflict},
		} {
			time.Sleep(step.wait)
			ended, err := h.service.ResumeBy(ctx, delivery.HaltScope{}, step.who)
			if ended != step.ended || flex.KindOf(err) != step.kind {
				t.Errorf("step %d, %s: ended %t, %v", i, step.who, ended, err)
			}
		}

		// Any other ends at once, and the machine's own people end any.
		for _, end := range []func() error{
			func() error { _, err := h.service.ResumeBy(ctx, delivery.HaltScope{}, "ada"); return err }, func() error { return h.service.Resume(ctx, delivery.HaltScope{}) },
		} {
			if err := h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a fault"}); err != nil {
				t.Fatal(err)
			}

			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestHalt_Reason(t *testing.T) {
	one(t, func(h *fixture) {
		ctx := context.Background()
		for length, ok := range map[int]bool{0: false, 1: true, delivery.ReasonMax: true, delivery.ReasonMax + 1: false} {
			err := h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: strings.Repeat("x", length)})
			if (err == nil) != ok {
				t.Errorf("a reason of %d bytes: %v", length, err)
			}

			if ok {
				if err := h.service.Resume(ctx, delivery.HaltScope{}); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// partsScene has three chargers: two of one organisation, in two GSP groups and of two models,
// and one of another organisation.
func partsScene(h *fixture) (other *fixture, first, second, theirs flex.AssetID) {
	other = h.tenant("Other")
	north := h.Site(flex.FullScheduleMethod)
	cars := []flex.AssetID{h.Asset(h.site, flex.Charger, 7400), h.Asset(north, flex.Charger, 7400), other.Asset(other.site, flex.Charger, 7400)}

	for mpan, group := range map[string]string{"1012345678901": "_C", "1012345678902": "_K"} {
		h.Exec(`INSERT INTO meter (mpan, import, address, postcode, uprn, energised, half_hourly, domestic, supplier_mpid, supplier_name, gsp_group)
			VALUES ($1, TRUE, '', '', '', TRUE, TRUE, TRUE, '', '', $2)`, mpan, group)
	}
	for site, mpan := range map[flex.SiteID]string{h.site: "1012345678901", other.site: "1012345678901", north: "1012345678902"} {
		h.Exec(`UPDATE site SET mpan = $2 WHERE id = $1`, site.Bytes(), mpan)
	}
	for i, model := range []string{"Zappi 2.1", "Home Pro", "Home Pro"} {
		h.Exec(
			`UPDATE asset SET model = $2, firmware = $3 WHERE id = $1`,
			cars[i].Bytes(),
			model,
			[]string{"V4.1", "", "v5"}[i],
		)
	}

	return other, cars[0], cars[1], cars[2]
}

// TestHalt_Parts halts parts of what is sent, several at once, and ends them one by one. What
// is in none of them is sent as ever, what is in one that has ended is sent within a second.
func TestHalt_Parts(t *testing.T) {
	each(t, func(h *fixture) {
		other, first, second, theirs := partsScene(h)
		mine, its := h.endpoint(nil), h.endpointOf(
			other.Org,
			"other",
			delivery.Settings{},
			nil,
		)
		defer h.work(h.service)()
		ctx := context.Background()

		org, endpoint := "organisation/"+h.Org.String(), "endpoint/"+h.Org.String()+"/schedule"
		for _, step := range []struct {
			halt, resume  string
			first, second bool // whether the organisation's newest plans leave
			theirs        bool
		}{
			{org, "", false, false, true},
			{endpoint, org, false, false, true},
			{"model/ZAPPI 2.1", endpoint, false, true, true},
			{"gsp-group/_K", "", false, false, true},
			{"firmware/v4.1", "model/zappi 2.1", false, false, true},
			{"firmware/V5", "", false, false, false},
			{"", "firmware/V4.1", true, false, false},
			{"", "firmware/v5", true, false, true},
			{"gsp-group/_C", "", false, false, false},
			{"", "gsp-group/_K", false, true, false},
			{"all", "gsp-group/_C", false, false, false},
			{"", "all", true, true, true},
		} {
			if step.halt != "" {
				check(t, h.service.Halt(ctx, delivery.HaltOrder{Scope: scope(t, step.halt), Operator: "ada", Reason: "a fault"}))
			}

			if step.resume != "" {
				check(t, h.service.Resume(ctx, scope(t, step.resume)))
			}

			plans := h.plan(2*time.Hour, first, second)
			plans = append(plans, other.plan(2*time.Hour, theirs)...)
			time.Sleep(10 * time.Minute)

			before := len(mine.all()) + len(its.all())
			for i, want := range []bool{step.first, step.second, step.theirs} {
				of := []*fixture{h, h, other}[i]
				if got := of.state(plans[i]) == flex.DeliveryAccepted; got != want {
					t.Errorf(
						"%s halted, %s resumed: asset %d has its plan: %t",
						step.halt,
						step.resume,
						i,
						got,
					)
				}
			}

			check(t, h.service.Drain(ctx, h.Org)) // does not wait for what is halted
			if after := len(mine.all()) + len(its.all()); after != before {
				t.Errorf("%s halted: %d pushes left later", step.halt, after-before)
			}
		}
	})
}

// A push that a halt of a part kept back leaves within a second of its end, once, the newest alone.
func TestHalt_PartEnds(t *testing.T) {
	each(t, func(h *fixture) {
		_, first, second, _ := partsScene(h)
		e := h.endpoint(nil)
		defer h.work(h.service)()
		ctx := context.Background()

		region := scope(t, "gsp-group/_C")
		check(t, h.service.Halt(ctx, delivery.HaltOrder{Scope: region, Operator: "ada", Reason: "a fault", Two: true}))
		h.plan(time.Hour, first)
		newest := h.plan(time.Hour, first, second)
		time.Sleep(5*time.Minute + 30*time.Second) // not as it is looked at again

		if findings, err := h.db.Verify(ctx); err != nil || len(findings) > 0 {
			t.Errorf("while a push is set aside: %v, %v", findings, err)
		}

		if p, err := h.service.PreviewHalt(ctx, region); err != nil || p != (delivery.HaltPreview{Sites: 2, Assets: 2, Waiting: 1}) {
			t.Errorf("it stops %+v, %v", p, err)
		}
		if ended, err := h.service.ResumeBy(ctx, region, "ada"); ended || err != nil {
			t.Errorf("one person ended it: %v", err)
		}
		if ended, err := h.service.ResumeBy(ctx, region, "bea"); !ended || err != nil {
			t.Errorf("two people did not end it: %v", err)
		}

		time.Sleep(time.Second)
		if n := len(e.all()); n != 2 || h.state(newest[0]) != flex.DeliveryAccepted {
			t.Errorf("%d pushes arrived, and of two chargers the newest should", n)
		}
	})
}

// What a halt of a model keeps back uses up nothing of its endpoint's rate.
func TestHalt_Rate(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpointOf(h.Org, "client", delivery.Settings{Rate: 1}, nil)
		defer h.work(h.service)()
		cars := h.chargers(31)
		other := cars[30]
		h.Exec(`UPDATE asset SET model = 'Home Pro' WHERE id <> $1`, other.Bytes())
		check(h.T, h.service.Halt(context.Background(), delivery.HaltOrder{Scope: scope(h.T, "model/home pro"), Operator: "ada", Reason: "a fault"}))

		h.plan(time.Hour, cars[:30]...)
		time.Sleep(time.Millisecond) // it comes after those
		id := h.plan(time.Hour, other)[0]
		time.Sleep(3 * time.Second)
		if s := h.state(id); s != flex.DeliveryAccepted {
			h.Errorf("the push of another model is %s", s)
		}
	})
}

// What a halt cannot be of is refused, and so is one too many.
func TestHalt_Scopes(t *testing.T) {
	one(t, func(h *fixture) {
		ctx := context.Background()
		for text, want := range map[string]flex.Kind{
			"": flex.Malformed, "every": flex.Malformed, "organisation/": flex.Malformed, "organisation/x": flex.Malformed, "endpoint/" + h.Org.String(): flex.Malformed,
			"model/": flex.Malformed, "firmware/": flex.Malformed, "gsp-group/": flex.Malformed, "gsp-group/C": flex.Malformed, "gsp-group/_Q": flex.Malformed,
			"organisation/018f3c2a-7b1e-7c3d-9f00-2b6a5d1e4c77": flex.NotFound, "endpoint/" + h.Org.String() + "/schedule": flex.NotFound,
			"model/" + strings.Repeat("x", delivery.ScopeNameMax+1): flex.Malformed, "model/" + strings.Repeat("x", delivery.ScopeNameMax): flex.Internal,
		} {
			s, err := delivery.ParseHaltScope(text)
			if err == nil {
				_, err = h.service.PreviewHalt(ctx, s)
			}

			if flex.KindOf(err) != want {
				t.Errorf("%s: %v", text, err)
			}
		}

		for i := range store.HaltsMax + 1 {
			err := h.service.Halt(ctx, delivery.HaltOrder{Scope: scope(t, "model/"+strings.Repeat("x", i+1)), Operator: "ada", Reason: "a fault"})
			if refused := err != nil; refused != (i == store.HaltsMax) {
				t.Errorf("halt %d: %v", i, err)
			}
		}
	})
}

func scope(t *testing.T, text string) delivery.HaltScope {
	t.Helper()
	s, err := delivery.ParseHaltScope(text)
	check(t, err)
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
