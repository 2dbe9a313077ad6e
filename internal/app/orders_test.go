package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// dispatcher is a dispatcher's business logic, the services that carry out what it asks for,
// and a clock.
type dispatcher struct {
	*testing.T
	now     time.Time
	org     flex.OrgID
	db      *store.DB
	adr     *adr.Service
	control *control.Service
}

func newDispatcher(t *testing.T, url string) *dispatcher {
	t.Helper()
	d := &dispatcher{T: t, now: time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)}
	d.db = storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return d.now }})
	d.org = storetest.NewSeed(t, d.db, url).Org
	d.control = &control.Service{DB: d.db}
	d.adr = &adr.Service{DB: d.db, Outcome: func(context.Context, flex.OrgID, flex.InstructionID) (*adr.Outcome, error) {
		return &adr.Outcome{Asked: -5000, Baseline: 9000, Expected: 9000}, nil
	}}
	return d
}

// put writes an object, in the place of one if its id is given, and returns its id.
func (d *dispatcher) put(kind flex.ADRKind, id flex.ADRObjectID, document string) flex.ADRObjectID {
	d.Helper()
	var read any
	if err := json.Unmarshal([]byte(document), &read); err != nil {
		d.Fatal(err)
	}

	c := adr.Client{Org: d.org, ID: "bl", Business: true}
	var o adr.Object
	var err error
	if id.IsZero() {
		o, err = d.adr.Create(d.Context(), c, kind, read)
	} else {
		o, err = d.adr.Replace(d.Context(), c, kind, id, read)
	}
	if err != nil {
		d.Fatal(err)
	}
	return o.ID
}

func (d *dispatcher) remove(kind flex.ADRKind, id flex.ADRObjectID) {
	d.Helper()
	if _, err := d.adr.Delete(d.Context(), adr.Client{Org: d.org, ID: "bl", Business: true}, kind, id); err != nil {
		d.Fatal(err)
	}
}

// event is an event's document: what is asked for from an instant of the day on, for an hour.
func event(program flex.ADRObjectID, start string, priority int, payload string) string {
	return fmt.Sprintf(`{"programID":%q,"priority":%d,"intervalPeriod":{"start":"2026-01-15T%s:00Z","duration":"PT1H"},"intervals":[{"id":0,"payloads":[%s]}]}`,
		program, priority, start, payload)
}

const less5, less7, most9 = `{"type":"DISPATCH_SETPOINT_RELATIVE","values":[-5]}`, `{"type":"DISPATCH_SETPOINT_RELATIVE","values":[-7]}`, `{"type":"IMPORT_CAPACITY_LIMIT","values":[9]}`

// holds runs the jobs and holds the orders and the instructions that are not stopped against what
// should be: as "18:00-19:00 less 5 sent", in their order.
func (d *dispatcher) holds(step string, want ...string) {
	d.Helper()
	for range 2 { // the second has nothing to do
		_, err := d.control.SendOrders(d.Context())
		if err == nil {
			_, err = d.adr.ReportOrders(d.Context())
		}
		if err != nil {
			d.Fatal(err)
		}
	}

	orders, err := d.adr.Orders(d.Context(), d.org, 100)
	if err != nil {
		d.Fatal(err)
	}

	var got, carried []string
	for _, o := range orders {
		goal := fmt.Sprint(o.Change.KW())
		if o.Limit != nil {
			goal = fmt.Sprint("at most ", o.Limit.KW())
		}
		at := o.From.Format("15:04-") + o.To.Format("15:04 ") + goal
		got = append(got, at+" "+string(o.State))
		if o.State == store.ADRSent {
			carried = append(carried, at)
		}
	}

	slices.Sort(got)
	if !slices.Equal(got, want) {
		d.Errorf("%s:\n%s\nwant\n%s", step, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	page, err := d.control.Instructions(d.Context(), d.org, flex.InstructionID{}, 100)
	if err != nil {
		d.Fatal(err)
	}

	active := 0
	for _, in := range page.Instructions {
		if in.Active(d.now) {
			active++
		}
	}
	if active != len(carried) {
		d.Errorf("%s: %d instructions are active, %v were sent", step, active, carried)
	}
}

// TestOrders has events of a bound program come twice, change, outrank each other, come too
// late and go.
func TestOrders(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"peak"}`)
		one := d.put(flex.ADREvent, none, event(program, "18:00", 5, less5))
		d.holds("not bound")

		bind := func(b flex.ADRBinding) error { return second(d.adr.Bind(d.Context(), d.org, &b, true)) }
		if err := bind(flex.ADRBinding{Program: program, Service: "dno", Scope: flex.Scope{Group: "nowhere"}}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("bound to a group that there is not: %v", err)
		}
		if err := bind(flex.ADRBinding{Program: program, Service: "dno"}); err != nil {
			t.Fatal(err)
		}

		d.holds("bound", "18:00-19:00 -5 sent")
		d.put(flex.ADREvent, one, event(program, "18:00", 5, less5))
		d.holds("twice", "18:00-19:00 -5 sent")

		d.put(flex.ADREvent, one, event(program, "18:00", 5, less7))
		d.holds("changed", "18:00-19:00 -5 withdrawn", "18:00-19:00 -7 sent")

		urgent := d.put(flex.ADREvent, none, event(program, "18:30", 1, most9))
		d.holds("outranked in part", "18:00-18:30 -7 sent", "18:00-19:00 -5 withdrawn", "18:00-19:00 -7 withdrawn", "18:30-19:30 at most 9 sent")

		d.remove(flex.ADREvent, urgent)
		stood := []string{"18:00-18:30 -7 withdrawn", "18:00-19:00 -5 withdrawn", "18:00-19:00 -7 sent", "18:00-19:00 -7 withdrawn", "18:30-19:30 at most 9 withdrawn"}
		d.holds("the urgent one is cancelled", stood...)

		d.put(flex.ADREvent, none, event(program, "15:00", 0, less5))
		d.holds("too late", append([]string{"15:00-16:00 0 refused"}, stood...)...)
		d.unmet(1)
		d.short(one)

		d.remove(flex.ADREvent, one)
		if err := second(d.adr.Unbind(d.Context(), d.org, program, true)); err != nil {
			t.Error(err)
		}
		if err := second(d.adr.Unbind(d.Context(), d.org, program, true)); flex.KindOf(err) != flex.NotFound {
			t.Errorf("unbound twice: %v", err)
		}
	})
}

// TestOrders_BoundBeside has a program bound at another price while another process carries
// out what its event asks for: the price that holds counts.
func TestOrders_BoundBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"peak"}`)
		b := flex.ADRBinding{Program: program, Service: "dno", Price: flex.FromGBPPerMWh(100)}
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}
		d.put(flex.ADREvent, none, event(program, "18:00", 5, less5))

		const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		locks, sent := storetest.At(t, d.db, url), make(chan error, 1)
		send := func() {
			_, err := d.control.SendOrders(context.Background())
			sent <- err
		}

		next := b
		next.Price = flex.FromGBPPerMWh(300)
		err := d.db.Write(t.Context(), d.org, func(tx *store.Tx) error {
			if err := tx.LockOrg(t.Context()); err != nil {
				return err
			}

			go send()
			for d.db.Engine() == "postgres" && len(sent) == 0 && locks.Count(waiting) == 0 {
				runtime.Gosched()
			}
			return tx.BindADRProgram(t.Context(), &next)
		})
		if err == nil {
			err = <-sent
		}
		if err != nil {
			t.Fatal(err)
		}

		page, err := d.control.Instructions(t.Context(), d.org, flex.InstructionID{}, 10)
		if err != nil || len(page.Instructions) != 1 || page.Instructions[0].Price != next.Price {
			t.Errorf("instructed by another binding than the one that holds: %+v, %v", page.Instructions, err)
		}
	})
}

// TestOrders_UnderWay has an event change when its first interval is over, and another be
// written when one that had a part of its time is over: what was carried out is not refused
// afterwards, and what is under way goes on.
func TestOrders_UnderWay(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"peak"}`)
		b := flex.ADRBinding{Program: program, Service: "dno"}
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}

		stand := func(step string, want ...string) {
			t.Helper()
			if _, err := d.control.SendOrders(t.Context()); err != nil {
				t.Fatal(err)
			}
			orders, err := d.adr.Orders(t.Context(), d.org, 100)
			if err != nil {
				t.Fatal(err)
			}

			var got []string
			for _, o := range orders {
				got = append(got, o.From.Format("15:04-")+o.To.Format("15:04 ")+fmt.Sprint(o.Change.KW())+" "+string(o.State))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n%s\nwant\n%s", step, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}

		two := func(payload string) string {
			return fmt.Sprintf(`{"programID":%q,"intervalPeriod":{"start":"2026-01-15T18:00:00Z","duration":"PT1H"},"intervals":[{"id":0,"payloads":[%s]},{"id":1,"payloads":[%s]}]}`,
				program, less5, payload)
		}
		one := d.put(flex.ADREvent, none, two(less5))
		stand("two intervals", "18:00-19:00 -5 sent", "19:00-20:00 -5 sent")

		d.now = d.now.Add(2*time.Hour + 10*time.Minute)
		d.put(flex.ADREvent, one, two(less7))
		stand("changed", "18:00-19:00 -5 sent", "19:00-20:00 -5 withdrawn", "19:00-20:00 -7 sent")

		short := strings.Replace(event(program, "19:20", 0, less5), "PT1H", "PT10M", 1)
		d.put(flex.ADREvent, none, short)
		parts := []string{"19:00-19:20 -7 sent", "19:00-20:00 -5 withdrawn", "19:00-20:00 -7 withdrawn", "19:20-19:30 -5 sent", "19:30-20:00 -7 sent"}
		stand("outranked for a while", append([]string{"18:00-19:00 -5 sent"}, parts...)...)

		d.now = d.now.Add(30 * time.Minute)
		d.put(flex.ADREvent, none, strings.Replace(event(program, "18:00", 5, less5), "2026-01-15", "2026-01-16", 1))
		stand("one for tomorrow", append([]string{"18:00-19:00 -5 sent", "18:00-19:00 -5 sent"}, parts...)...)
	})
}

// TestOrders_AtRandom has what an event asks for go on although the event is over, as its
// start was moved at random, and another is written meanwhile.
func TestOrders_AtRandom(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"peak"}`)
		b := flex.ADRBinding{Program: program, Service: "dno"}
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}

		state := func(event flex.ADRObjectID) (flex.Span, store.ADROrderState) {
			t.Helper()
			if _, err := d.control.SendOrders(t.Context()); err != nil {
				t.Fatal(err)
			}
			orders, err := d.adr.Orders(t.Context(), d.org, 100)
			if err != nil {
				t.Fatal(err)
			}

			for _, o := range orders {
				if o.Event == event {
					return o.Span, o.State
				}
			}
			t.Fatal("it asks for nothing")
			return flex.Span{}, ""
		}

		over := time.Date(2026, 1, 15, 18, 10, 0, 0, time.UTC)
		for {
			one := d.put(flex.ADREvent, none, fmt.Sprintf(
				`{"programID":%q,"intervalPeriod":{"start":"2026-01-15T18:00:00Z","duration":"PT10M","randomizeStart":"PT8H"},"intervals":[{"id":0,"payloads":[%s]}]}`, program, less5))
			span, _ := state(one)
			if !span.From.After(over) { // it was hardly moved
				d.remove(flex.ADREvent, one)
				continue
			}

			d.now = span.From.Add(time.Minute)
			d.put(flex.ADREvent, none, strings.Replace(event(program, "18:00", 5, less5), "2026-01-15", "2026-01-17", 1))
			if _, is := state(one); is != store.ADRSent {
				t.Errorf("it is %s", is)
			}
			return
		}
	})
}

// TestOrders_TooLong has what lasts longer than an instruction may be refused at once, however
// far ahead it is.
func TestOrders_TooLong(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"peak"}`)
		b := flex.ADRBinding{Program: program, Service: "dno"}
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}

		for i, length := range []string{"PT24H", "PT24H1M"} {
			far := strings.Replace(event(program, "18:00", 0, less5), "2026-01-15", fmt.Sprintf("2026-01-2%d", 2*i), 1)
			d.put(flex.ADREvent, none, strings.Replace(far, "PT1H", length, 1))
		}
		if _, err := d.control.SendOrders(t.Context()); err != nil {
			t.Fatal(err)
		}

		orders, err := d.adr.Orders(t.Context(), d.org, 100)
		if err != nil || len(orders) != 2 {
			t.Fatalf("%+v, %v", orders, err)
		}

		for _, o := range orders {
			want := store.ADRWaiting
			if o.Len() > 24*time.Hour {
				want = store.ADRRefused
			}
			if o.State != want {
				t.Errorf("%s: %s, %q", o.Len(), o.State, o.Problem)
			}
		}
	})
}

// TestOrders_Limits has events of a program that is bound for limits of a feeder become such,
// and go.
func TestOrders_Limits(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		if err := d.control.SetCaps(t.Context(), d.org, flex.Caps{Groups: []flex.CapGroup{{Name: "feeder"}}}); err != nil {
			t.Fatal(err)
		}
		if err := d.control.SetLink(t.Context(), d.org, flex.CapLink{Group: "feeder", Fallback: new(flex.Watts(1000)), Silence: 15 * time.Minute}); err != nil {
			t.Fatal(err)
		}

		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"feeder"}`)
		b := flex.ADRBinding{Program: program, Kind: flex.ADRImportLimit, Service: "dno"}
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); flex.KindOf(err) != flex.Malformed {
			t.Errorf("a limit without a group: %v", err)
		}
		b.Scope.Group = "feeder"
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}

		limits := func(step string, want int, lost bool) {
			t.Helper()
			if _, err := d.control.WatchLinks(t.Context()); err != nil {
				t.Fatal(err)
			}
			found, links, err := d.control.Limits(t.Context(), d.org)
			if err != nil || len(found) != want || links[0].LostAt.IsZero() == lost {
				t.Errorf("%s: %d limits, %+v: %v", step, len(found), links, err)
			}
		}

		one := d.put(flex.ADREvent, none, event(program, "18:00", 5, most9))
		d.holds("a limit", "18:00-19:00 at most 9 limited")
		limits("a limit", 1, false)
		d.now = d.now.Add(14 * time.Minute)
		d.put(flex.ADREvent, one, event(program, "18:00", 5, most9)) // the same again: a sign of life
		d.now = d.now.Add(14 * time.Minute)
		limits("heard", 1, false)

		d.now = d.now.Add(time.Minute)
		limits("silence", 1, true)
		d.put(flex.ADREvent, none, event(program, "19:00", 5, less5))
		d.holds("a change is no limit", "18:00-19:00 at most 9 limited", "19:00-20:00 -5 refused")
		limits("heard again", 1, false)
		d.remove(flex.ADREvent, one)
		d.holds("cancelled", "18:00-19:00 at most 9 withdrawn", "19:00-20:00 -5 refused")
		limits("cancelled", 0, false)

		caps := flex.Caps{Groups: []flex.CapGroup{{Name: "another"}}}
		if err := d.control.SetCaps(t.Context(), d.org, caps); flex.KindOf(err) != flex.Conflict {
			t.Errorf("a group that a program is bound to went: %v", err)
		}
		d.forgotten(2)
	})
}

// TestOrders_BoundWhileLost has a program bound at another price while the link of its feeder
// is lost: nothing was heard of the dispatcher, and the fallback binds further.
func TestOrders_BoundWhileLost(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		if err := d.control.SetCaps(t.Context(), d.org, flex.Caps{Groups: []flex.CapGroup{{Name: "feeder"}}}); err != nil {
			t.Fatal(err)
		}
		if err := d.control.SetLink(t.Context(), d.org, flex.CapLink{Group: "feeder", Fallback: new(flex.Watts(1000)), Silence: 15 * time.Minute}); err != nil {
			t.Fatal(err)
		}

		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"feeder"}`)
		b := flex.ADRBinding{Program: program, Kind: flex.ADRImportLimit, Service: "dno"}
		b.Scope.Group = "feeder"
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}

		d.put(flex.ADREvent, none, event(program, "18:00", 5, most9))
		d.holds("a limit", "18:00-19:00 at most 9 limited")
		d.now = d.now.Add(15 * time.Minute)
		if _, err := d.control.WatchLinks(t.Context()); err != nil {
			t.Fatal(err)
		}

		b.Price = flex.FromGBPPerMWh(100)
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}
		d.holds("bound again", "18:00-19:00 at most 9 limited", "18:00-19:00 at most 9 withdrawn")

		if _, links, err := d.control.Limits(t.Context(), d.org); err != nil || links[0].LostAt.IsZero() {
			t.Errorf("to bind the program again counts as heard: %+v, %v", links, err)
		}
	})
}

// TestOrders_ExportLimits has limits of a feeder's import and export be beside each other, and
// an export that cannot be limited refused with what would be right.
func TestOrders_ExportLimits(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		if err := d.control.SetCaps(t.Context(), d.org, flex.Caps{Groups: []flex.CapGroup{{Name: "feeder"}}}); err != nil {
			t.Fatal(err)
		}

		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"feeder"}`)
		const gives4 = `{"type":"EXPORT_CAPACITY_LIMIT","values":[4]}`
		for _, c := range []struct {
			kind flex.ADRBindingKind
			want string
		}{{flex.ADRInstruction, "bind its program with the kind limit"}, {flex.ADRImportLimit, "not of export"}} {
			b := flex.ADRBinding{Program: program, Kind: c.kind, Service: "dno", Scope: flex.Scope{Group: "feeder"}}
			if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
				t.Fatal(err)
			}

			id := d.put(flex.ADREvent, none, event(program, "20:00", 5, gives4))
			if _, err := d.control.SendOrders(t.Context()); err != nil {
				t.Fatal(err)
			}
			orders, err := d.adr.Orders(t.Context(), d.org, 1)
			if err != nil || orders[0].State != store.ADRRefused || !strings.Contains(orders[0].Problem, c.want) {
				t.Errorf("%s: %+v: %v", c.kind, orders, err)
			}

			d.remove(flex.ADREvent, id)
			if err := second(d.adr.Unbind(t.Context(), d.org, program, true)); err != nil {
				t.Fatal(err)
			}
		}

		b := flex.ADRBinding{Program: program, Kind: flex.ADRLimit, Service: "dno", Scope: flex.Scope{Group: "feeder"}}
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}
		one := d.put(flex.ADREvent, none, event(program, "18:00", 5, gives4))
		d.put(flex.ADREvent, none, event(program, "18:00", 0, most9))
		before := []string{"20:00-21:00 at most 4 withdrawn", "20:00-21:00 at most 4 withdrawn"}
		d.holds("both directions", append([]string{"18:00-19:00 at most 4 limited", "18:00-19:00 at most 9 limited"}, before...)...)
		d.put(flex.ADREvent, none, event(program, "18:30", 0, `{"type":"EXPORT_CAPACITY_LIMIT","values":[2]}`))
		d.holds("a higher priority", append([]string{"18:00-18:30 at most 4 limited", "18:00-19:00 at most 4 withdrawn", "18:00-19:00 at most 9 limited", "18:30-19:30 at most 2 limited"}, before...)...)

		d.remove(flex.ADREvent, one)
		found, _, err := d.control.Limits(t.Context(), d.org)
		if err != nil || len(found) != 3 {
			t.Errorf("%+v: %v", found, err)
		}
		d.holds("cancelled", append([]string{"18:00-18:30 at most 4 withdrawn", "18:00-19:00 at most 4 withdrawn", "18:00-19:00 at most 9 limited", "18:30-19:30 at most 2 limited"}, before...)...)
		found, _, err = d.control.Limits(t.Context(), d.org)
		if err != nil || len(found) != 2 || found[0].Direction != flex.Import || found[1].Direction != flex.Export || found[1].Power != 2000 {
			t.Errorf("%+v: %v", found, err)
		}
	})
}

// forgotten holds how many orders are kept until their time is over, and that none is after it.
func (d *dispatcher) forgotten(kept int) {
	d.Helper()
	for _, pass := range []struct {
		after time.Duration
		want  int
	}{{30 * 24 * time.Hour, kept}, {control.Retention, 0}} {
		d.now = d.now.Add(pass.after)
		if _, err := d.adr.ReportOrders(d.Context()); err != nil {
			d.Fatal(err)
		}

		if _, err := d.control.Purge(d.Context()); err != nil {
			d.Fatal(err)
		}
		orders, err := d.adr.Orders(d.Context(), d.org, 100)
		if err != nil || len(orders) != pass.want {
			d.Errorf("%d orders are kept after %v, not %d: %v", len(orders), pass.after, pass.want, err)
		}
	}
}

// unmet holds what an operator is shown against how much was not carried out.
func (d *dispatcher) unmet(want int) {
	d.Helper()
	err := d.db.ReadAll(d.Context(), func(all *store.All) error {
		n, newest, err := all.UnmetADROrders(d.Context(), d.org)
		if n != want || newest.Problem == "" || newest.Org != d.org {
			d.Errorf("%d orders are not met, not %d: %+v", n, want, newest)
		}
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
}

// short lets the evening pass: nothing was brought, which the dispatcher and an operator are shown.
func (d *dispatcher) short(event flex.ADRObjectID) {
	d.Helper()
	d.now = time.Date(2026, 1, 15, 19, 0, 0, 0, time.UTC)
	if _, err := d.adr.ReportOrders(d.Context()); err != nil {
		d.Fatal(err)
	}
	d.unmet(2)

	found, err := d.adr.Search(d.Context(), adr.Client{Org: d.org, Business: true}, flex.ADRSearch{Kind: flex.ADRReport, Event: event})
	if err != nil || len(found) != 1 {
		d.Fatalf("%d reports: %v", len(found), err)
	}
	if text := found[0].ADRObject.Document; !strings.Contains(text, `"short"`) || !strings.Contains(text, "0.000 of 5.000 kWh were brought, as expected") {
		d.Errorf("the report says %s", text)
	}
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }
