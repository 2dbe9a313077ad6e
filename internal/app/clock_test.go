package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// Every background job says what its part in an advance is, or why it has none.
func TestJobs_EachHasAPart(t *testing.T) {
	h, err := Open(t.Context(), Settings{Database: storetest.SQLite(t), Keys: storetest.Keys(t), Environment: flex.Sandbox})
	if err != nil {
		t.Fatal(err)
	}

	defer h.Close()
	h.jobs = nil
	h.addJobs(true)

	for _, j := range h.jobs {
		works, stands := j.next != nil && j.run != nil, j.apart != ""
		if works == stands || (j.next == nil) != (j.run == nil) {
			t.Errorf("job %s: next %t, run %t, apart %q", j.Name, j.next != nil, j.run != nil, j.apart)
		}
	}
}

// clocked is an organisation whose history is played while its clock is advanced.
type clocked struct {
	*testing.T
	*storetest.Seed
	app      *App
	chargers []flex.AssetID
	battery  flex.AssetID
	at       time.Time
	after    func() // done after each advance and each event; may be nil
}

// openClocked opens flexd at an instant of a true clock that stands still.
func openClocked(t *testing.T, url string, start time.Time, endpoint string) *clocked {
	t.Helper()
	return openClockedBy(t, url, start, endpoint, func() time.Time { return start })
}

// openClockedBy opens flexd at an instant of a true clock.
func openClockedBy(t *testing.T, url string, start time.Time, endpoint string, now func() time.Time) *clocked {
	t.Helper()
	h, err := Open(t.Context(), Settings{Database: url, Keys: storetest.Keys(t), Environment: flex.Sandbox, InventPrices: true,
		AllowPrivateEndpoints: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: now})
	if err != nil {
		t.Fatal(err)
	}

	s := &clocked{T: t, Seed: storetest.NewSeed(t, h.DB, url), app: h, at: start}
	for range 3 {
		s.chargers = append(s.chargers, s.Asset(s.Site(flex.FullScheduleMethod, flex.LimitedPauseMethod), flex.Charger, 7400))
	}

	s.battery = s.Asset(s.Site(flex.FullScheduleMethod), flex.Battery, 3600)
	s.Exec(`UPDATE asset SET capacity_wh = 13500 WHERE id = $1`, s.battery.Bytes())
	s.Consent(time.UnixMicro(1))
	s.write(func(tx *store.Tx) error {
		for name, value := range map[string]string{"user_share": "0.5", "credit_pence_per_kwh": "1"} {
			if err := tx.PutTerm(t.Context(), flex.Term{Name: name, Value: value}); err != nil {
				return err
			}
		}
		return tx.SetSettings(t.Context(), flex.OrgSettings{Books: flex.BooksSettings{CloseAfterDays: 1}})
	})

	if endpoint != "" {
		s.must(h.Push.SetEndpoint(t.Context(), s.Org, flex.ScheduleEndpoint, delivery.Settings{URL: endpoint, Rate: delivery.RateMax}))
	}

	return s
}

func (s *clocked) must(_ any, _ any, err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *clocked) write(fn func(*store.Tx) error) {
	s.Helper()
	if err := s.app.DB.Write(s.T.Context(), s.Org, fn); err != nil {
		s.Fatal(err)
	}
}

// play draws a history of some days and advances the clock from one of its events to the next,
// by no more than the step.
func (s *clocked) play(seed uint64, days int, step time.Duration) {
	s.Helper()
	r := rand.New(rand.NewPCG(seed, 13))
	end := s.at.Add(time.Duration(days) * 24 * time.Hour)

	for {
		wait := time.Duration(r.IntN(5*60)) * time.Minute
		act := r.IntN(10)
		car := s.chargers[r.IntN(len(s.chargers))]
		need := flex.WattHours(5000 + r.IntN(30000))
		hours := 1 + r.IntN(12)

		next := s.at.Add(wait)
		if next.After(end) {
			s.advance(end, step)
			return
		}

		s.advance(next, step)
		s.act(act, car, need, hours)
		if s.after != nil {
			s.after()
		}
	}
}

func (s *clocked) advance(to time.Time, step time.Duration) {
	s.Helper()
	for s.at.Before(to) {
		s.at = s.at.Add(min(step, to.Sub(s.at)))
		if err := s.app.Advance(s.T.Context(), s.Org, s.at); err != nil {
			s.Fatal(err)
		}
	}
}

// act does something with a car. What cannot be done then is refused, in every run alike.
func (s *clocked) act(act int, car flex.AssetID, need flex.WattHours, hours int) {
	ev := control.Event{Kind: control.PlugOut}
	later := s.at.Add(time.Duration(hours) * time.Hour)

	switch {
	case act < 4:
		ev = control.Event{Kind: control.PlugIn, Intent: &flex.Intent{Need: need, ReadyBy: later, Mode: flex.Minimise}}
	case act == 6:
		ev = control.Event{Kind: control.ChargeNow, EndAt: later}
	case act == 7:
		s.pause(car, hours)
		return
	case act > 7:
		s.read(car, hours, need)
		return
	}

	_ = s.app.Control.Event(s.T.Context(), s.Org, car, ev)
}

func (s *clocked) pause(car flex.AssetID, hours int) {
	from := flex.PeriodAt(s.at).Add(hours)
	s.write(func(tx *store.Tx) error {
		a, err := tx.Asset(s.T.Context(), car)
		if err != nil {
			return err
		}
		return tx.SetPause(s.T.Context(), a, flex.Span{From: from.Start(), To: from.Add(2).Start()}, 0)
	})
}

// read reports what a charger drew in the half-hours of the last day, but for the last few
// hours, and what the battery holds.
func (s *clocked) read(car flex.AssetID, late int, need flex.WattHours) {
	var batch []reading.Input
	last := flex.PeriodAt(s.at).Add(-2 * late)
	for p := last.Add(-48); p.Before(last); p = p.Add(1) {
		kwh := float64((int(need)+p.Start().Hour())%4) * 0.7
		batch = append(batch, reading.Input{AssetID: car, Span: p.Span(), Label: flex.ChargerEnergy, Value: kwh})
	}

	now := flex.PeriodAt(s.at).Start()
	batch = append(batch, reading.Input{AssetID: s.battery, Span: flex.Span{From: now, To: now}, Label: flex.BatteryStateOfCharge, Value: float64(need % 100)})
	s.must(nil, nil, second(s.app.Reading.Store(s.T.Context(), s.Org, batch)))
}

func second[T any](_ T, err error) error { return err }

// byDesign are columns that tell when something was done by the true clock, how often it was
// looked at, or what it was named by.
var byDesign = []string{"took", "version", "events", "hash", "clock_offset", "clock_held", "secret", "sealed", "random"}

// apartTables hold no record of the organisation that an advance makes: a publication that
// nobody was plugged in for is marked as planned on where an advance ends.
var apartTables = []string{"wave", "credential", "token", "org", "endpoint"}

var anyID = regexp.MustCompile(`(?i)\b(\\x)?[0-9a-f]{32,64}\b|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// records returns every row of the organisation, but for ids that are drawn.
func (s *clocked) records() (all []string) {
	s.Helper()
	columns := `SELECT m.name || '.' || p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'`
	text := `COALESCE(CASE WHEN typeof(%[1]s) = 'blob' THEN hex(%[1]s) ELSE CAST(%[1]s AS TEXT) END, '-')`
	if s.app.DB.Engine() == "postgres" {
		columns = `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = current_schema()`
		text = `COALESCE(CAST(%[1]s AS TEXT), '-')`
	}

	of := map[string][]string{}
	for _, c := range s.Strings(columns) {
		table, column, _ := strings.Cut(c, ".")
		of[table] = append(of[table], column)
	}

	for table, columns := range of {
		own := slices.Contains(columns, "org_id")
		if slices.Contains(apartTables, table) || !own && !slices.Contains([]string{"reading"}, table) {
			continue
		}

		slices.Sort(columns)
		var parts []string
		for _, c := range columns {
			if !slices.Contains(byDesign, c) {
				parts = append(parts, fmt.Sprintf(`'%s=' || `+text, c))
			}
		}

		for _, row := range s.Strings(`SELECT ` + strings.Join(parts, ` || ' ' || `) + ` FROM ` + table) {
			all = append(all, table+": "+anyID.ReplaceAllStringFunc(row, func(id string) string {
				if plain := strings.TrimPrefix(strings.ReplaceAll(id, "-", ""), `\x`); strings.HasPrefix(plain, "00000000000") {
					return id // of the test's own
				}
				return "id"
			}))
		}
	}

	slices.Sort(all)
	return all
}

// lacks returns what one list has and the other has not.
func lacks(a, b []string) (only []string) {
	count := map[string]int{}
	for _, row := range b {
		count[row]++
	}

	for _, row := range a {
		if count[row]--; count[row] < 0 {
			only = append(only, row)
		}
	}

	return only
}

// advanced plays a history and returns what is on record then.
func advanced(t *testing.T, url, endpoint string, seed uint64, days int, step time.Duration, plant func(*App)) []string {
	t.Helper()
	start := time.Date(2026, time.March, 27, 9, 10, 0, 0, time.UTC) // the clocks go forward on the 29th, and March ends
	s := openClocked(t, url, start, endpoint)
	if plant != nil {
		plant(s.app)
	}

	s.play(seed, days, step)
	s.app.Push.Close()
	all := s.records()
	storetest.Close(t, s.app.DB)
	return all
}

// Advancing a clock in one go, by hours or by minutes ends with the same records.
func TestAdvance_Steps(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer receiver.Close()

	steps := []time.Duration{5 * time.Hour, 23 * time.Minute}
	seeds := uint64(1)
	if os.Getenv("FLEXD_LONG") != "" {
		seeds = 3
	}

	for seed := range seeds {
		t.Run("sqlite", func(t *testing.T) {
			compareSteps(t, storetest.SQLite, receiver.URL, seed, 7, steps)
		})
	}

	t.Run("minutes", func(t *testing.T) {
		compareSteps(t, storetest.SQLite, receiver.URL, 4, 1, []time.Duration{time.Minute})
	})
	t.Run("postgres", func(t *testing.T) {
		compareSteps(t, storetest.Postgres, receiver.URL, 3, storetest.OneOf("postgres", 7, 3), steps[:1])
	})
}

// compareSteps plays a history of some days at one go and in steps.
func compareSteps(t *testing.T, fresh func(testing.TB) string, endpoint string, seed uint64, days int, steps []time.Duration) {
	t.Helper()
	once := advanced(t, fresh(t), endpoint, seed, days, AdvanceMax, nil)
	if len(once) < 70*days {
		t.Errorf("only %d records were made", len(once))
	}

	for _, step := range steps {
		differ(t, fmt.Sprintf("seed %d by %v", seed, step), once, advanced(t, fresh(t), endpoint, seed, days, step, nil))
	}
}

func differ(t *testing.T, what string, once, steps []string) {
	t.Helper()
	a, b := lacks(once, steps), lacks(steps, once)
	for i := range min(8, len(a)) {
		t.Errorf("%s: at one go only: %.600s", what, a[i])
	}

	for i := range min(8, len(b)) {
		t.Errorf("%s: in steps only: %.600s", what, b[i])
	}
}

// What is asked and run for an organisation is the same whether its clock is advanced alone or
// with a hundred others: nobody does anything of anybody else's.
func TestAdvance_Together(t *testing.T) {
	const orgs = 100
	alone, together := advanceCalls(t, 1, false), advanceCalls(t, orgs, false)
	if alone == 0 || together*10 > orgs*alone*12 {
		t.Errorf("%d calls for %d organisations, %d for one alone", together, orgs, alone)
	}

	if planted := advanceCalls(t, orgs, true); planted*10 <= orgs*advanceCalls(t, 1, true)*12 {
		t.Errorf("a job that does everybody's work is not found: %d calls", planted)
	}
}

// advanceCalls advances the clocks of organisations with a car each by a day, and returns how
// often their jobs were asked or run. With a fault one job does the work of all.
func advanceCalls(t *testing.T, orgs int, fault bool) int64 {
	t.Helper()
	start := time.Date(2026, time.January, 15, 18, 0, 0, 0, time.UTC)
	url := storetest.SQLite(t)
	h, err := Open(t.Context(), Settings{Database: url, Keys: storetest.Keys(t), Environment: flex.Sandbox, InventPrices: true, Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}

	defer storetest.Close(t, h.DB)
	defer h.Push.Close()

	var list []flex.OrgID
	for seed := storetest.NewSeed(t, h.DB, url); len(list) < orgs; {
		org, err := h.DB.AddOrg(t.Context(), fmt.Sprint("org ", len(list)))
		if err != nil {
			t.Fatal(err)
		}

		list = append(list, org.ID)
		of := seed.As(org.ID)
		car := of.Asset(of.Site(flex.FullScheduleMethod), flex.Charger, 7400)
		ev := control.Event{Kind: control.PlugIn, Intent: &flex.Intent{Need: 12000, ReadyBy: start.Add(13 * time.Hour)}}

		if err := h.Control.Event(t.Context(), org.ID, car, ev); err != nil {
			t.Fatal(err)
		}
	}

	var calls atomic.Int64
	for i := range h.jobs {
		j := &h.jobs[i]
		if j.next == nil {
			continue
		}

		var also []flex.OrgID
		if fault && j.Name == "control" {
			also = list[1:]
		}
		j.part = counted(j.part, &calls, also)
	}

	advanceAll(t, h, start.Add(24*time.Hour), list...)
	return calls.Load()
}

// counted counts what an advance asks of a job and has it do, for other organisations too.
func counted(p part, calls *atomic.Int64, also []flex.OrgID) part {
	return part{
		hasUndatedWork: p.hasUndatedWork,
		next: func(tx *store.Tx, ctx context.Context, after time.Time) (time.Time, error) {
			calls.Add(1)
			return p.next(tx, ctx, after)
		},
		run: func(ctx context.Context, org flex.OrgID) (worker.Report, error) {
			for _, other := range also {
				calls.Add(1)
				if _, err := p.run(ctx, other); err != nil {
					return worker.Report{}, err
				}
			}

			calls.Add(1)
			return p.run(ctx, org)
		},
	}
}

// advanceAll advances the clocks of organisations at once.
func advanceAll(t testing.TB, h *App, to time.Time, orgs ...flex.OrgID) {
	var all sync.WaitGroup
	for _, org := range orgs {
		all.Go(func() {
			if err := h.Advance(t.Context(), org, to); err != nil {
				t.Error(err)
			}
		})
	}

	all.Wait()
}

// A job that names no instant, though it says when it is asked what is due now, is found. What
// sessions teach is the same whenever it is looked at, as long as no reading comes between.
func TestAdvance_PlantedFault(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer receiver.Close()

	// Each job with the history that found its fault last: it is the first that is tried.
	for name, first := range map[string]uint64{"control": 5, "batteries": 0, "credits": 0, "settlement": 0, "books": 0} {
		forgetful := func(h *App) {
			for i := range h.jobs {
				if h.jobs[i].Name == name {
					h.jobs[i].part = forgetting(h.jobs[i].part)
				}
			}
		}

		// Not each history has something happen at an instant of the job's alone.
		found := 0
		for n := uint64(0); n < plantedHistories && found == 0; n++ {
			seed := 1 + (first+n)%plantedHistories
			once := advanced(t, storetest.SQLite(t), receiver.URL, seed, 7, AdvanceMax, forgetful)
			steps := advanced(t, storetest.SQLite(t), receiver.URL, seed, 7, 2*time.Hour, forgetful)
			found = len(lacks(once, steps))
		}

		if found == 0 {
			t.Errorf("job %s names no instant, and nothing differs", name)
		}
	}
}

// plantedHistories is how many histories are tried before a fault counts as not found.
const plantedHistories = 6

// forgetting makes of a part one that names no instant.
func forgetting(p part) part {
	next, waits := p.next, p.hasUndatedWork
	p.next = func(*store.Tx, context.Context, time.Time) (time.Time, error) { return time.Time{}, nil }
	p.hasUndatedWork = func(tx *store.Tx, ctx context.Context) (bool, error) {
		at, err := next(tx, ctx, time.Time{})
		if err != nil || waits == nil || !at.IsZero() && !at.After(tx.Now()) {
			return !at.IsZero() && !at.After(tx.Now()), err
		}
		return waits(tx, ctx)
	}

	return p
}

// An endpoint that hangs holds nobody else's advance up, and its own organisation's for no longer
// than an advance waits.
func TestAdvance_HangingEndpoint(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ended, asked := make(chan struct{}), make(chan struct{}, 100)
		hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			select {
			case <-ended:
			case <-r.Context().Done():
			}
		}))
		defer hangs.Close()

		s := openClocked(t, url, time.Date(2026, time.January, 15, 18, 0, 0, 0, time.UTC), hangs.URL)
		defer storetest.Close(t, s.app.DB)
		defer s.app.Push.Close()
		defer close(ended) // first of these: else Close waits until the push is given up

		s.act(0, s.chargers[0], 9000, 12)
		if _, err := s.app.Push.DispatchDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-asked // its push is under way, and stays so

		other, err := s.app.DB.AddOrg(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}

		before := len(asked)
		if err := s.app.Advance(t.Context(), other.ID, s.at.Add(10*24*time.Hour)); err != nil {
			t.Fatal(err)
		}

		if len(asked) != before || s.Count(`SELECT count(*) FROM attempt`) != 0 {
			t.Error("the advance waited for an endpoint that is not its organisation's")
		}

		own := advance{App: s.app, org: s.Org, wait: time.Millisecond}
		if err := own.run(t.Context(), s.at, s.at.Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}

		if now, _, err := s.app.Clock(t.Context(), s.Org); err != nil || now.Before(s.at.Add(24*time.Hour)) || own.wait != 0 {
			t.Errorf("advanced to %v, wait %v: %v", now, own.wait, err)
		}
	})
}

// An advance that is broken off ends at an instant on the way, and the next one ends as if nothing
// had been.
func TestAdvance_BrokenOff(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openClocked(t, url, time.Date(2026, time.January, 15, 18, 0, 0, 0, time.UTC), "")
		defer storetest.Close(t, s.app.DB)
		defer s.app.Push.Close()

		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		runs := 0
		for i := range s.app.jobs {
			if j := &s.app.jobs[i]; j.Name == "batteries" {
				run := j.run
				j.run = func(ctx context.Context, org flex.OrgID) (worker.Report, error) {
					if runs++; runs == 20 {
						stop()
					}

					return run(ctx, org)
				}
			}
		}

		to := s.at.Add(5 * 24 * time.Hour)
		if err := s.app.Advance(ctx, s.Org, to); !errors.Is(err, context.Canceled) {
			t.Fatalf("broken off: %v", err)
		}

		now, held, err := s.app.Clock(t.Context(), s.Org)
		if err != nil || !held || !now.After(s.at) || !now.Before(to) {
			t.Fatalf("the clock reads %v, held %t: %v", now, held, err)
		}

		if err := s.app.Advance(t.Context(), s.Org, to); err != nil {
			t.Fatal(err)
		}
	})
}
