package selection_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/selection"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// fixture is two chargers at sites under control, the first with a car plugged in, and a battery.
type fixture struct {
	*testing.T
	*storetest.Seed
	service *selection.Service
	assets  []flex.AssetID
}

var begins = time.Date(2026, 1, 14, 21, 40, 0, 0, time.UTC)

func each(t *testing.T, test func(f *fixture)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(
			t,
			url,
			store.Options{Environment: flex.Sandbox, Now: func() time.Time { return begins }},
		)
		f := &fixture{T: t, Seed: storetest.NewSeed(t, db, url)}
		f.service = &selection.Service{DB: db, Control: &control.Service{DB: db}, Push: &delivery.Service{DB: db}, Registry: &registry.Service{DB: db}}
		for _, kind := range []flex.AssetType{flex.Charger, flex.Charger, flex.Battery} {
			f.assets = append(f.assets, f.Asset(f.Site(flex.FullScheduleMethod), kind, 7400))
		}

		f.plugIn()
		test(f)
	})
}

func (f *fixture) plugIn() {
	f.Helper()
	intent := &flex.Intent{Need: flex.FromKWh(10), ReadyByLocal: new(flex.WallTime(7 * time.Hour)), Mode: flex.Minimise}
	if err := f.service.Control.Event(f.Context(), f.Org, f.assets[0], control.Event{Kind: control.PlugIn, Intent: intent}); err != nil {
		f.Fatal(err)
	}
}

// look returns what is kept of the first asset.
func (f *fixture) look() (c store.PlanningState) {
	f.Helper()
	err := f.service.DB.Read(f.Context(), f.Org, func(tx *store.Tx) (err error) {
		c, err = tx.PlanningState(f.Context(), f.assets[0])
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// does previews an action on all assets, which changes nothing, and does it; it returns the line of the first.
func (f *fixture) does(a selection.Action, possible int) selection.Line {
	f.Helper()
	before := f.look()
	shown, err := f.service.Preview(f.Context(), a, f.assets)
	if err != nil || shown.Possible != possible {
		f.Fatalf("preview of %s: %+v, %v", a.Kind, shown, err)
	}
	if after := f.look(); after.Current.Generation != before.Current.Generation || after.Open() != before.Open() {
		f.Fatalf("the preview of %s changed something", a.Kind)
	}

	r, err := f.service.Do(f.Context(), a, f.assets, "")
	if err != nil || !r.Done || r.Possible != possible {
		f.Fatalf("%s: %+v, %v", a.Kind, r, err)
	}
	if r.Lines[0].Outcome != shown.Lines[0].Outcome {
		f.Errorf(
			"%s: shown as %q, came to %q",
			a.Kind,
			shown.Lines[0].Outcome,
			r.Lines[0].Outcome,
		)
	}

	return r.Lines[0]
}

// Each action does to each asset what its preview showed, and is refused where it cannot be, for itself.
func TestSelection(t *testing.T) {
	each(t, func(f *fixture) {
		if l := f.does(selection.Action{Kind: selection.Replan}, 1); !strings.Contains(l.Outcome, "schedule 2: may charge") {
			f.Errorf("planned anew: %q", l.Outcome)
		}
		if l := f.does(selection.Action{Kind: selection.Resend}, 1); l.Outcome != "schedule 2 is sent once more" {
			f.Errorf("sent again: %q", l.Outcome)
		}

		f.does(selection.Action{Kind: selection.ChargeNow, For: 2 * time.Hour}, 1)
		if now := f.look().ChargeNow; !now.To.Equal(begins.Add(2 * time.Hour)) {
			f.Errorf("charges now until %v", now.To)
		}

		l := f.does(selection.Action{Kind: selection.ReadyBy, By: flex.WallTime(6 * time.Hour)}, 2)
		if in := f.look().Intent; *in.ReadyByLocal != flex.WallTime(6*time.Hour) || in.Need != flex.FromKWh(10) {
			f.Errorf("ready by %v, %v", *in.ReadyByLocal, in.Need)
		}
		if !strings.HasSuffix(l.Outcome, "ready by 06:00 on Thu 15 Jan") {
			f.Errorf("ready by: %q", l.Outcome)
		}

		f.does(selection.Action{Kind: selection.Release}, 1)
		if c := f.look(); c.Open() || c.Current.Cause != store.CauseFreed {
			f.Errorf("released: open %v, by %s", c.Open(), c.Current.Cause)
		}

		f.plugIn()
		if c := f.look(); !c.Open() || c.Current.Cause != store.CausePlugIn {
			f.Errorf(
				"plugged in after its release: open %v, by %s",
				c.Open(),
				c.Current.Cause,
			)
		}
	})
}

// What charges now charges as planned again once that is ended, and where it does not charge now there is nothing to end.
func TestSelection_EndChargeNow(t *testing.T) {
	each(t, func(f *fixture) {
		end := selection.Action{Kind: selection.EndChargeNow}
		shown, err := f.service.Preview(f.Context(), end, f.assets[:1])
		if err != nil || shown.Possible != 0 || shown.Lines[0].Fault != "charge-now is not asked of it" {
			f.Errorf("of what does not charge now: %+v, %v", shown, err)
		}

		f.does(selection.Action{Kind: selection.ChargeNow, For: 2 * time.Hour}, 1)
		f.does(end, 1)
		if c := f.look(); !c.Open() || !c.ChargeNow.Empty() {
			f.Errorf("open %v, charges now %v", c.Open(), c.ChargeNow)
		}
	})
}

// What is excluded is planned by nothing that happens to it, until it is included again.
func TestSelection_Exclude(t *testing.T) {
	each(t, func(f *fixture) {
		f.does(selection.Action{Kind: selection.Exclude}, 3)
		if c := f.look(); c.Open() || c.Controlled || c.Current.Cause != store.CauseFreed {
			f.Errorf(
				"excluded: open %v, controlled %v, by %s",
				c.Open(),
				c.Controlled,
				c.Current.Cause,
			)
		}

		f.plugIn()
		if c := f.look(); !c.Open() || c.Current.Generation != 0 {
			f.Errorf(
				"plugged in while it is excluded: open %v, schedule %d",
				c.Open(),
				c.Current.Generation,
			)
		}

		r, err := f.service.Preview(
			f.Context(),
			selection.Action{Kind: selection.Replan},
			f.assets[:1],
		)
		if err != nil || r.Lines[0].Fault != "it is excluded from control" {
			f.Errorf("planned while it is excluded: %+v, %v", r, err)
		}

		l := f.does(selection.Action{Kind: selection.Include}, 3)
		if c := f.look(); !c.Controlled || c.Current.Generation == 0 || !strings.Contains(l.Outcome, "may charge") {
			f.Errorf(
				"included: controlled %v, schedule %d, %q",
				c.Controlled,
				c.Current.Generation,
				l.Outcome,
			)
		}

		f.does(selection.Action{Kind: selection.Exclude}, 3)
		if r, err := f.service.Preview(f.Context(), selection.Action{Kind: selection.Exclude}, f.assets); err != nil || r.Possible != 0 {
			f.Errorf("excluded twice: %+v, %v", r, err)
		}
	})
}

// What cannot be undone is done to what was shown alone, by whoever types so.
func TestSelection_Offboard(t *testing.T) {
	each(t, func(f *fixture) {
		a := selection.Action{Kind: selection.Offboard}
		for _, typed := range []string{"", "offboard 2", "yes"} {
			if _, err := f.service.Do(f.Context(), a, f.assets, typed); flex.KindOf(err) != flex.Conflict {
				f.Errorf("typed %q: %v", typed, err)
			}
		}

		r, err := f.service.Do(
			f.Context(),
			a,
			append(f.assets, f.assets[0]),
			"offboard 3",
		)
		if err != nil || r.Possible != 3 || len(r.Lines) != 3 {
			f.Fatalf("offboard: %+v, %v", r, err)
		}

		again, err := f.service.Preview(f.Context(), a, f.assets)
		if err != nil || again.Possible != 0 || !strings.Contains(again.String(), "0 of 3; ") {
			f.Errorf("what is away: %s, %v", again, err)
		}
	})
}

// An organisation that moves to another database refuses no asset: the run ends, for somebody to try again.
func TestSelection_Moves(t *testing.T) {
	each(t, func(f *fixture) {
		number, err := f.service.DB.Leave(f.Context(), f.Org, "new")
		if err != nil {
			f.Fatal(err)
		}

		r, err := f.service.Do(
			f.Context(),
			selection.Action{Kind: selection.Exclude},
			f.assets,
			"",
		)
		if flex.KindOf(err) != flex.Unavailable || len(r.Lines) > 0 {
			f.Errorf("while it moves: %+v, %v", r, err)
		}
		if err := f.service.DB.Stay(f.Context(), f.Org, number); err != nil {
			f.Fatal(err)
		}

		f.does(selection.Action{Kind: selection.Exclude}, 3)
	})
}

// A selection has at least one asset and an end, and an action is one of those that there are.
func TestSelection_Bounds(t *testing.T) {
	s := &selection.Service{}
	many := make([]flex.AssetID, selection.Max+1)
	for i := range many {
		many[i][0], many[i][1] = byte(i), byte(i>>8)
	}

	for _, bad := range []struct {
		kind   selection.Kind
		assets []flex.AssetID
	}{{selection.Replan, nil}, {selection.Replan, many}, {"dance", many[:1]}} {
		if _, err := s.Preview(t.Context(), selection.Action{Kind: bad.kind}, bad.assets); flex.KindOf(err) != flex.Invalid {
			t.Errorf("%s of %d: %v", bad.kind, len(bad.assets), err)
		}
	}
}
