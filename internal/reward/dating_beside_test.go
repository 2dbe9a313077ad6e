package reward_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store/storetest"
)

// beside settles the events of a pause, and calls a function before what was settled is
// written: on SQLite after it.
func (y *fixture) beside(t *testing.T, change func(*registry.Service) error) error {
	t.Helper()
	settle := func(ctx context.Context) error {
		_, err := y.service.SettleEvents(ctx)
		return err
	}

	return y.meanwhile(
		t,
		"settlement",
		settle,
		func() error { return change(&registry.Service{DB: y.db}) },
	)
}

// meanwhile settles, and makes a change before what was settled is written to a table: on
// SQLite after it.
func (y *fixture) meanwhile(t *testing.T, table string, settle func(context.Context) error, change func() error) error {
	t.Helper()
	settled, changed := make(chan error, 1), make(chan error, 1)
	first := func() { settled <- settle(context.WithoutCancel(t.Context())) }
	second := func() { changed <- change() }

	if y.db.Engine() != "postgres" {
		first()
		second()
	} else {
		gate := storetest.At(t, y.db, y.url).ShutGate(table)
		defer gate.Open()
		go first()

		for len(settled)+gate.Waiting() < 1 {
			runtime.Gosched()
		}
		go second()
		for len(settled)+len(changed)+gate.Waiting() < 2 {
			runtime.Gosched()
		}
		gate.Open()
	}

	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	return <-changed
}

// A power or a capacity is dated back while another process settles an event of that time: as
// after it, it is refused, or the event is settled again by it.
func TestRating_DatedBeside(t *testing.T) {
	power := func(y *fixture, from registry.Dating) func(*registry.Service) error {
		change := registry.AssetChange{AssetProperties: registry.AssetProperties{Power: new(flex.Watts(200))}, PowerFrom: from}
		return func(s *registry.Service) error {
			_, err := s.ChangeAsset(context.Background(), y.org, y.asset, change)
			return err
		}
	}

	capacity := func(y *fixture, from registry.Dating) func(*registry.Service) error {
		change := registry.SiteChange{Supply: flex.SupplyChange{Import: new(flex.Watts(1000)), Export: new(flex.Watts(1000))}, SupplyFrom: from}
		return func(s *registry.Service) error {
			_, err := s.ChangeSite(context.Background(), y.org, y.site, change)
			return err
		}
	}

	for name, dated := range map[string]func(*fixture, registry.Dating) func(*registry.Service) error{"power": power, "capacity": capacity} {
		for _, repair := range []string{"", "it was measured"} {
			t.Run(name+" "+repair, func(t *testing.T) {
				storetest.EachURL(t, func(t *testing.T, url string) {
					y, monday, v := pausedMonday(t, url)
					y.exec(
						t,
						`UPDATE site SET mpan = $2, postcode = 'S11 1GL' WHERE id = $1`,
						y.site.Bytes(),
						y.db.Kept("site", "mpan", "2000000010007"),
					)
					y.kwh(t, monday, v.Metered)
					y.now = monday.Period(36).End()
					err := y.beside(t, dated(y, registry.Dating{From: monday, Repair: repair}))
					if repair == "" && (flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "settled already")) || repair != "" && err != nil {
						t.Errorf("dated to a day that is being settled: %v", err)
					}

					due := storetest.At(t, y.db, url).Count(`SELECT count(*) FROM flex_event WHERE version > 0 AND look_at <= $1`, y.now.UnixMicro())
					if due > 0 != (repair != "") {
						t.Errorf("%d settled events are looked at again", due)
					}
					y.now = y.now.Add(time.Hour)
					y.events(t)
					y.sound(t)
				})
			})
		}
	}
}
