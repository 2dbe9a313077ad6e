package reading_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	_ "flexd/test/seed"
)

// fixture is a store with one organisation, whose assets are numbered from 1, and a clock
// that the test turns.
type fixture struct {
	url     string
	db      *store.DB
	service *reading.Service
	org     flex.OrgID
	now     time.Time
}

// fataler is a test of testing or of rapid.
type fataler interface {
	Helper()
	Fatal(...any)
}

func asset(n int) flex.AssetID { return flex.AssetID{1, byte(n >> 8), byte(n)} }

func open(t testing.TB, url string, assets int) *fixture {
	t.Helper()
	h := &fixture{url: url, now: now}
	h.db = storetest.Open(t, url, store.Options{Now: func() time.Time { return h.now }})
	h.service = &reading.Service{DB: h.db}
	org, err := h.db.AddOrg(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}

	h.org = org.ID
	site := flex.SiteID{9}
	h.exec(t, `INSERT INTO site (id, org_id, created_at) VALUES ($1, $2, 0)`, site.Bytes(), org.ID.Bytes())
	for n := 1; n <= assets; n++ {
		h.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, created_at) VALUES ($1, $2, $3, $4, 'charger', 0)`,
			asset(n).Bytes(), org.ID.Bytes(), site.Bytes(), fmt.Sprint(n))
	}
	return h
}

func (h *fixture) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	if err := storetest.Exec(t, h.url, statement, args...); err != nil {
		t.Fatal(err)
	}
}

func (h *fixture) take(t fataler, batch ...reading.Input) []reading.Verdict {
	t.Helper()
	verdicts, err := h.service.Store(context.Background(), h.org, batch)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// values returns what is known of one asset and label on the day of now, oldest first, as
// it was known at an instant; zero means now.
func (h *fixture) values(t fataler, id flex.AssetID, label flex.Label, knownAt time.Time) string {
	t.Helper()
	var rs []flex.Reading
	err := h.db.Read(context.Background(), h.org, func(tx *store.Tx) (err error) {
		rs, err = tx.Readings(context.Background(), store.ReadingQuery{
			Assets: []flex.AssetID{id}, Labels: []flex.Label{label}, Days: []flex.Day{flex.DayAt(now)}, KnownAt: knownAt,
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	byTime := map[string]string{}
	for _, r := range rs {
		byTime[r.To.Format("15:04")] = fmt.Sprint(float64(r.Value) / 1e6)
	}
	var all []string
	for at := flex.DayAt(now).Start(); !at.After(flex.DayAt(now).Span().To); at = at.Add(time.Minute) {
		if v, known := byTime[at.Format("15:04")]; known {
			all = append(all, at.Format("15:04")+"="+v)
		}
	}
	return strings.Join(all, " ")
}

func half(id flex.AssetID, clock string, value float64) reading.Input {
	return given(id, flex.ChargerEnergy, clock, flex.HalfHour, value)
}

func given(id flex.AssetID, label flex.Label, clock string, length time.Duration, value float64) reading.Input {
	at, err := time.Parse("2006-01-02 15:04", now.Format("2006-01-02 ")+clock)
	if err != nil {
		panic(err)
	}
	return reading.Input{AssetID: id, Label: label, Span: flex.Span{From: at, To: at.Add(length)}, Value: value}
}

func TestTake_BatchVector(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, 0)
		var v struct {
			Request struct{ Readings []givenJSON }
			Answer  struct{ Responses []struct{ Accepted bool } } `json:"expected_response"`
		}
		b, err := os.ReadFile("testdata/readings-batch-partial.json")
		if err != nil {
			t.Fatal(err)
		}

		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		h.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, created_at) VALUES ($1, $2, $3, 'v', 'charger', 0)`,
			v.Request.Readings[0].AssetID.Bytes(), h.org.Bytes(), flex.SiteID{9}.Bytes())
		var batch []reading.Input
		for _, g := range v.Request.Readings {
			batch = append(batch, g.given())
		}

		for i, verdict := range h.take(t, batch...) {
			if verdict.Accepted() != v.Answer.Responses[i].Accepted {
				t.Errorf("reading %d: %q", i, verdict)
			}
		}
	})
}

func TestTake_CorrectionsKeepTheirHistory(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		h.take(t, half(a, "10:00", 1), half(a, "10:30", 2))
		first := h.now
		h.now = h.now.Add(time.Hour)
		h.take(t, half(a, "10:00", 1), half(a, "10:30", 2.5)) // the first repeats, the second corrects
		second := h.now
		h.now = h.now.Add(time.Hour)
		h.take(t, half(a, "10:30", 2.75), half(a, "09:30", 0.5))
		h.take(t, half(a, "10:30", 3)) // at the same instant: nobody knew 2.75

		for _, tt := range []struct {
			at   time.Time
			want string
		}{
			{first.Add(-time.Second), ""},
			{first, "10:30=1 11:00=2"},
			{second.Add(-time.Microsecond), "10:30=1 11:00=2"},
			{second, "10:30=1 11:00=2.5"},
			{h.now, "10:00=0.5 10:30=1 11:00=3"},
			{time.Time{}, "10:00=0.5 10:30=1 11:00=3"},
		} {
			if got := h.values(t, a, flex.ChargerEnergy, tt.at); got != tt.want {
				t.Errorf("as known at %s: %s, want %s", tt.at, got, tt.want)
			}
		}
	})
}

func TestTake_OwnAssetsOnly(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 2), asset(1)
		other, err := h.db.AddOrg(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}

		verdicts, err := h.service.Store(t.Context(), other.ID, []reading.Input{half(a, "10:00", 1), half(asset(99), "10:00", 1)})
		if err != nil {
			t.Fatal(err)
		}
		if verdicts[0] != reading.NotFound || verdicts[1] != verdicts[0] {
			t.Errorf("another's asset %q, and one that never was %q", verdicts[0], verdicts[1])
		}

		for range 2 { // once asking the store, once remembering
			if v := h.take(t, half(a, "10:00", 1)); !v[0].Accepted() {
				t.Error(v[0])
			}
		}
		h.exec(t, `DELETE FROM reading_due WHERE asset_id = $1`, a.Bytes()) // these three as tx.DropAsset does
		h.exec(t, `DELETE FROM asset WHERE id = $1`, a.Bytes())
		h.exec(t, `UPDATE org SET register = register + 1`)
		if v := h.take(t, half(a, "10:30", 1), half(asset(2), "10:30", 1)); v[0] != reading.NotFound || !v[1].Accepted() {
			t.Errorf("an asset that was taken away: %q, and one that stayed: %q", v[0], v[1])
		}
	})
}

// TestTake_OrgMoved: readings of an organisation that has moved to another cell since the
// request was let in are to be sent again, which brings them there. They are no internal
// error, nor refused for good.
func TestTake_OrgMoved(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		for _, where := range []flex.Environment{flex.Production, flex.Sandbox} {
			db := storetest.Open(t, url, store.Options{Environment: where, Now: func() time.Time { return now }})
			s := &reading.Service{DB: db}

			_, err := s.Store(t.Context(), flex.OrgID{1}, []reading.Input{half(asset(1), "10:00", 1)})
			if flex.KindOf(err) != flex.Unavailable || !flex.OnlyMoves(err) {
				t.Errorf("%s: %v", where, err)
			}
		}
	})
}

func TestTake_SameReadingTwiceInABatch(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		for i, v := range h.take(t, half(a, "10:00", 1), half(a, "10:00", 1), half(a, "10:00", 4)) {
			if !v.Accepted() {
				t.Errorf("reading %d: %s", i, v)
			}
		}
		if got := h.values(t, a, flex.ChargerEnergy, time.Time{}); got != "10:30=4" {
			t.Errorf("kept %s, want the last one", got)
		}
	})
}

// A reading that is held back takes no good one with it that came before it in the same batch,
// of the same time.
func TestTake_HeldAfterAGoodOne(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		h.exec(t, `UPDATE asset SET power_w = 7400`)
		read := func(clock string, v float64) reading.Input {
			return given(a, flex.ChargerRegister, clock, 0, v)
		}

		for i, v := range h.take(t, half(a, "10:00", 2), half(a, "10:00", 3), half(a, "10:00", 300),
			read("09:00", 100), read("09:30", 101), read("09:30", 9000), read("10:00", 102)) {
			if v.Accepted() != (i != 2 && i != 5) {
				t.Errorf("reading %d: %q", i, v)
			}
		}
		if got := h.values(t, a, flex.ChargerEnergy, time.Time{}); got != "10:30=3" {
			t.Errorf("of the energies %s is kept", got)
		}
		if got := h.values(t, a, flex.ChargerRegister, time.Time{}); got != "09:00=100 09:30=101 10:00=102" {
			t.Errorf("of the register %s is kept", got)
		}
		h.verify(t)
	})
}

func TestTake_Registers(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 2), asset(1)
		read := func(clock string, v float64) reading.Input {
			return given(a, flex.ChargerRegister, clock, 0, v)
		}

		for _, step := range []struct {
			batch []reading.Input
			want  string // a letter for each: accepted or refused
		}{
			{[]reading.Input{read("10:00", 100), read("10:30", 101), read("11:00", 100.5)}, "aar"},
			{[]reading.Input{read("11:00", 101), given(asset(2), flex.ChargerRegister, "11:00", 0, 3)}, "aa"},
			{[]reading.Input{read("09:30", 100.5), read("09:30", 99)}, "aa"},   // the last counts
			{[]reading.Input{read("10:15", 101.5), read("10:15", 99.9)}, "ar"}, // between 100 and 101
			{[]reading.Input{read("11:00", 1e6)}, "r"},                         // a spike is held back
			{[]reading.Input{read("11:30", 102)}, "a"},
			{[]reading.Input{read("11:30", 102), read("11:00", 101.5)}, "aa"}, // put right, in any order
			{[]reading.Input{read("11:00", 102.5)}, "r"},
			{[]reading.Input{given(a, flex.ChargerRegister, "11:15", 30*time.Minute, 102.25)}, "a"}, // read at 11:45
		} {
			var got strings.Builder
			for _, v := range h.take(t, step.batch...) {
				got.WriteByte("ra"[map[bool]int{true: 1}[v.Accepted()]])
			}
			if got.String() != step.want {
				t.Errorf("%v: %s, want %s", step.batch, &got, step.want)
			}
		}

		if got := h.values(t, a, flex.ChargerRegister, time.Time{}); got != "09:30=99 10:00=100 10:30=101 11:00=101.5 11:30=102" { // the one at 11:45 is at no edge of a half-hour
			t.Errorf("kept %s", got)
		}

		// A register that was last read long ago still does not fall.
		h.now = now.AddDate(1, 0, 0)
		late := h.now.Add(-time.Hour)
		v := h.take(t, reading.Input{AssetID: a, Label: flex.ChargerRegister, Span: flex.Span{From: late, To: late}, Value: 2e5})
		w := h.take(t, reading.Input{AssetID: a, Label: flex.ChargerRegister, Span: flex.Span{From: late, To: late}, Value: 50})
		if !v[0].Accepted() || w[0].Accepted() {
			t.Errorf("a year later: %q, and below: %q", v[0], w[0])
		}
	})
}

func TestTake_Limit(t *testing.T) {
	h := open(t, storetest.SQLite(t), 1)
	batch := make([]reading.Input, reading.BatchMax+1)
	for i := range batch {
		batch[i] = half(asset(1), "10:00", 1)
	}
	if _, err := h.service.Store(t.Context(), h.org, batch); flex.KindOf(err) != flex.TooLarge {
		t.Errorf("%d readings: %v", len(batch), err)
	}
	if v := h.take(t, batch[1:]...); !v[0].Accepted() {
		t.Errorf("%d readings: %s", len(batch)-1, v[0])
	}
}

// Whatever batches come in whatever order, what is kept of each half-hour is the last
// accepted value, every verdict is the one that the rules give, and the past stays as it
// was known.
func TestTake_AgainstModel(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, 3)
		type slot struct {
			asset flex.AssetID
			clock string
		}
		kept := map[slot]float64{}
		var past []struct {
			at   time.Time
			want map[slot]float64
		}

		label := flex.ProvisionalConsumption
		show := func(of map[slot]float64, id flex.AssetID) string {
			var all []string
			for i := range 20 {
				if v, known := of[slot{id, clock(i)}]; known {
					all = append(all, clock(i+1)+"="+fmt.Sprint(v))
				}
			}
			return strings.Join(all, " ")
		}

		rapid.Check(t, func(rt *rapid.T) {
			h.now = h.now.Add(time.Second)
			var batch []reading.Input
			for range rapid.IntRange(1, 8).Draw(rt, "readings") {
				g := given(asset(rapid.IntRange(1, 4).Draw(rt, "asset")), label, clock(rapid.IntRange(0, 19).Draw(rt, "at")), flex.HalfHour,
					float64(rapid.IntRange(-1, 20).Draw(rt, "value")))
				batch = append(batch, g)
			}

			for i, v := range h.take(rt, batch...) {
				g := batch[i]
				good := g.Value >= 0 && g.Value <= 12 && g.AssetID != asset(4)
				if v.Accepted() != good {
					rt.Fatalf("%+v: %q", g, v)
				}
				if good {
					kept[slot{g.AssetID, g.From.Format("15:04")}] = g.Value
				}
			}

			snapshot := map[slot]float64{}
			for k, v := range kept {
				snapshot[k] = v
			}
			past = append(past, struct {
				at   time.Time
				want map[slot]float64
			}{h.now, snapshot})

			p := past[rapid.IntRange(0, len(past)-1).Draw(rt, "past")]
			for n := 1; n <= 3; n++ {
				if got, want := h.values(rt, asset(n), label, p.at), show(p.want, asset(n)); got != want {
					rt.Fatalf("asset %d as known at %s: %s, want %s", n, p.at, got, want)
				}
			}
		})
	})
}

func clock(i int) string { return fmt.Sprintf("%02d:%02d", i/2, i%2*30) }

// Two batches of the same readings in opposite orders do not lock each other out.
func TestTake_Concurrently(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, 50)
		var wg sync.WaitGroup

		for w := range 8 {
			wg.Go(func() {
				for round := range 5 {
					var batch []reading.Input
					for n := range 50 {
						batch = append(batch, half(asset(1+(n*(w+1)+w)%50), clock(round), float64(w)))
					}

					for _, v := range h.take(t, batch...) {
						if !v.Accepted() {
							t.Error(v)
						}
					}
				}
			})
		}

		wg.Wait()
	})
}

// Batches of 1,000 half-hours of 1,000 assets, from two writers, as a fleet reports.
func BenchmarkTake(b *testing.B) {
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			h := open(b, url(b), 1)
			site := flex.SiteID{9}
			for n := 2; n <= 1000; n += 100 {
				var rows []string
				for i := n; i < n+100; i++ {
					rows = append(rows, fmt.Sprintf("(%s, %s, %s, '%d', 'charger', 0)", hex(engine, asset(i).Bytes()), hex(engine, h.org.Bytes()), hex(engine, site.Bytes()), i))
				}
				h.exec(b, `INSERT INTO asset (id, org_id, site_id, external_id, type, created_at) VALUES `+strings.Join(rows, ","))
			}

			b.SetParallelism(2)
			var batches atomic.Int64
			b.ResetTimer()

			b.RunParallel(func(pb *testing.PB) {
				batch := make([]reading.Input, 1000)
				for pb.Next() {
					from := flex.PeriodAt(now).Add(-int(batches.Add(1)) % 19000).Start()
					for i := range batch {
						batch[i] = reading.Input{AssetID: asset(1 + i), Label: flex.ChargerEnergy, Span: flex.Span{From: from, To: from.Add(flex.HalfHour)}, Value: float64(i % 10)}
					}

					for _, v := range h.take(b, batch...) {
						if !v.Accepted() {
							b.Error(v)
							return
						}
					}
				}
			})

			b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "readings/s")
		})
	}
}

func hex(engine string, b []byte) string {
	if engine == "sqlite" {
		return fmt.Sprintf("x'%x'", b)
	}
	return fmt.Sprintf("'%x'", b)
}

func TestGaps(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, site := open(t, url, 3), flex.SiteID{9}
		yesterday := flex.DayAt(now).Add(-1)
		h.exec(t, `UPDATE asset SET type = 'battery', created_at = $2 WHERE id = $1`, asset(3).Bytes(), now.AddDate(0, 0, -9).UnixMicro())
		h.exec(t, `UPDATE asset SET created_at = $2 WHERE id = $1`, asset(2).Bytes(), yesterday.Period(40).Start().Add(time.Second).UnixMicro())
		var batch []reading.Input

		for n := 1; n <= 48; n++ {
			p := yesterday.Period(n)
			if n != 7 && n != 9 {
				batch = append(batch, reading.Input{AssetID: asset(1), Label: flex.ChargerEnergy, Span: p.Span(), Value: 1})
			}
			batch = append(batch, reading.Input{AssetID: asset(1), Label: flex.BoundaryImportRegister, Span: flex.Span{From: p.End(), To: p.End()}, Value: float64(n)})
		}

		h.take(t, batch...)
		gaps, err := h.service.Gaps(t.Context(), h.org, site, yesterday, yesterday.Add(1))
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, g := range gaps {
			got = append(got, fmt.Sprintf("%d %s %s %d/%d from %s", g.AssetID[2], g.Label, g.Day, g.Missing, g.Expected, g.First.Format("15:04")))
		}
		want := []string{
			"1 charger_consumption_energy_kwh 2026-01-14 2/48 from 03:00",
			"1 charger_consumption_energy_kwh 2026-01-15 24/24 from 00:00", // until noon, which it is
			"1 boundary_lifetime_import_energy_kwh 2026-01-14 1/48 from 00:00",
			"1 boundary_lifetime_import_energy_kwh 2026-01-15 24/24 from 00:00",
			"2 charger_consumption_energy_kwh 2026-01-14 8/8 from 20:00",
			"2 charger_consumption_energy_kwh 2026-01-15 24/24 from 00:00",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}

		today := yesterday.Add(1)
		week, err := h.service.Gaps(t.Context(), h.org, site, today.Add(-7), today)
		if unsaid, unsaidErr := h.service.Gaps(t.Context(), h.org, site, flex.Day{}, flex.Day{}); err != nil || unsaidErr != nil || !reflect.DeepEqual(unsaid, week) {
			t.Errorf("without days: %v %v\nthe last week and today: %v %v", unsaid, unsaidErr, week, err)
		}
		if _, err := h.service.Gaps(t.Context(), h.org, flex.SiteID{8}, yesterday, yesterday); flex.KindOf(err) != flex.NotFound {
			t.Errorf("an unknown site: %v", err)
		}

		for last, kind := range map[flex.Day]flex.Kind{yesterday.Add(reading.GapDaysMax): flex.Malformed, yesterday.Add(reading.GapDaysMax - 1): 0, yesterday.Add(-1): flex.Malformed} {
			if _, err := h.service.Gaps(t.Context(), h.org, site, yesterday, last); (err != nil) != (kind != 0) || err != nil && flex.KindOf(err) != kind {
				t.Errorf("to %s: %v", last, err)
			}
		}
	})
}

// TestGaps_BeyondRating: what was taken before the device's power was known to be less is
// missing, and named.
func TestGaps_BeyondRating(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, site := open(t, url, 1), flex.SiteID{9}
		yesterday := flex.DayAt(now).Add(-1)
		ten, eleven := yesterday.Period(21), yesterday.Period(22)
		h.take(t,
			reading.Input{AssetID: asset(1), Label: flex.ChargerEnergy, Span: ten.Span(), Value: 0.825},
			reading.Input{AssetID: asset(1), Label: flex.ChargerEnergy, Span: eleven.Span(), Value: 0.826})
		h.exec(t, `UPDATE asset SET power_w = 1500`)

		gaps, err := h.service.Gaps(t.Context(), h.org, site, yesterday, yesterday)
		if err != nil || len(gaps) != 1 {
			t.Fatalf("%d gaps, %v", len(gaps), err)
		}
		g := gaps[0]
		want := []settle.Beyond{{Period: eleven, Label: flex.ChargerEnergy, Energy: 826}}
		if g.Missing != 47 || !reflect.DeepEqual(g.Beyond, want) || g.Limit(g.Beyond[0]) != 825 {
			t.Errorf("%d are missing, want 47; %+v are beyond %+v, want %+v", g.Missing, g.Beyond, g.Limits, want)
		}
	})
}

func TestRetention_ForgetsOldReadings(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		h.take(t, half(a, "10:00", 1), half(a, "10:30", 2))
		h.now = h.now.Add(time.Hour)
		h.take(t, half(a, "10:30", 3))
		type step struct {
			at   time.Time
			want string
		}
		steps := []step{
			{now.Add(-2*time.Hour + reading.Retention), "10:30=1 11:00=3"},
			{now.Add(-90*time.Minute + reading.Retention), "11:00=3"},
			{now.Add(reading.Retention), ""},
		}

		if h.db.Engine() == "postgres" { // with the week that they are of
			over := time.Date(2026, 1, 22, 0, 0, 0, 0, time.UTC).Add(reading.Retention)
			steps = []step{{over.Add(-time.Second), "10:30=1 11:00=3"}, {over, ""}}
		}

		for _, tt := range steps {
			h.now = tt.at
			if _, err := h.service.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := h.values(t, a, flex.ChargerEnergy, time.Time{}); got != tt.want {
				t.Errorf("at %s: %s, want %s", tt.at, got, tt.want)
			}
		}
	})
}
