package market_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/market"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

var october = ledger.Month{Year: 2026, Month: time.October} // with the autumn's clock change: 1,490 half-hours

// volumes is an organisation with metering points, and a clock after October.
type volumes struct {
	*testing.T
	db      *store.DB
	url     string
	service *market.Service
	org     flex.OrgID
	sites   []flex.SiteID
	mpans   []string
}

func newVolumes(t *testing.T, url string, points int) *volumes {
	t.Helper()
	v := &volumes{T: t, url: url}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	v.db = storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
	v.service = &market.Service{DB: v.db}
	org, err := v.db.AddOrg(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}

	v.org = org.ID
	seed := storetest.At(t, v.db, url)
	span := market.MonthSpan(october)
	var meters []flex.Meter

	for i := range points {
		site, mpan := flex.SiteID{1, byte(i >> 8), byte(i)}, fmt.Sprintf("12%011d", i)
		v.sites, v.mpans = append(v.sites, site), append(v.mpans, mpan)
		seed.Exec(`INSERT INTO site (id, org_id, mpan, created_at) VALUES ($1, $2, $3, 0)`, site.Bytes(), v.org.Bytes(), seed.Kept("site", "mpan", mpan))
		seed.Exec(`INSERT INTO registration (id, mpan, point, org_id, site_id, from_at) VALUES ($1, $2, $2, $3, $1, $4)`,
			site.Bytes(), seed.Kept("registration", "mpan", mpan), v.org.Bytes(), span.From.UnixMicro())
		if i%10 != 9 {
			meters = append(meters, flex.Meter{MPAN: mpan, Import: true, Energised: true, HalfHourly: true, Domestic: true, SupplierMPID: "SUP" + string(rune('A'+i%3)), GSPGroup: "_" + string(rune('A'+i%5))})
		}
	}

	if err := v.db.WriteAll(t.Context(), func(all *store.All) error { return all.PutMeters(t.Context(), meters) }); err != nil {
		t.Fatal(err)
	}
	v.priced(span)
	return v
}

func (v *volumes) priced(span flex.Span) {
	v.Helper()
	var ps []flex.PricedPeriod
	for p := flex.PeriodAt(span.From); p.Start().Before(span.To); p = p.Add(1) {
		ps = append(ps, flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(100), Known: true})
	}
	err := v.db.WriteAll(v.Context(), func(all *store.All) error {
		_, err := all.AddPublication(v.Context(), store.Publication{Source: "file", PublishedAt: span.From, Span: span}, ps)
		return err
	})
	if err != nil {
		v.Fatal(err)
	}
}

// settle stores what was settled of a site's day.
func (v *volumes) settle(site flex.SiteID, day flex.Day, periods ...int) {
	v.Helper()
	var hs []store.HalfHour
	for _, n := range periods {
		e := flex.FlexEventID{9, byte(day.Dom), byte(n), site[1], site[2]}
		hs = append(hs, store.HalfHour{Site: site, Period: day.Period(n), Metered: 400, Baseline: 1500, Deviation: -1100, Import: 5000, Export: 5000,
			Parts: []store.Part{{Event: e, Flex: -1100, Most: 2000}}})
	}
	err := v.db.Write(v.Context(), v.org, func(tx *store.Tx) error { return tx.PutHalfHours(v.Context(), site, day, hs) })
	if err != nil {
		v.Fatal(err)
	}
}

// out writes the month as the file that goes out, and returns it.
func (v *volumes) out() string {
	v.Helper()
	var b bytes.Buffer
	if _, err := v.service.WriteVolumes(v.Context(), v.org, october, &b); err != nil {
		v.Fatal(err)
	}
	return b.String()
}

// in imports a report.
func (v *volumes) in(run, text string) (int, error) {
	return v.service.ImportReport(v.Context(), v.org, run, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil })
}

// sums compares the month with the reports of a run.
func (v *volumes) sums(run string) market.Sums {
	v.Helper()
	var s market.Sums
	err := v.service.HalfHours(v.Context(), v.org, october, run, func(h *market.PointHalfHour) error {
		s.Add(h)
		return nil
	})
	if err != nil {
		v.Fatal(err)
	}
	return s
}

// A report that has a half-hour twice is imported on either engine, and its last row counts.
func TestVolumes_RowTwice(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		v := newVolumes(t, url, 1)
		row := v.mpans[0] + ",2026-10-05,35,"
		_, err := v.in("SF", "mpan,settlement_date,settlement_period,delivered_kwh\n"+row+"-0.5\n"+row+"-1.1\n")
		if err != nil {
			t.Fatal(err)
		}

		if s := v.sums("SF"); s.Settled != -1100 {
			t.Errorf("%d Wh are settled, want the last row's -1100", s.Settled)
		}
	})
}

// What is settled goes out, comes back in reports of several runs, and is compared: the later
// run supersedes, a report twice changes nothing, one with a wrong point is not imported.
func TestVolumes_OutAndIn(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		v := newVolumes(t, url, 3)
		first, change := flex.Day{Year: 2026, Month: 10, Dom: 5}, flex.Day{Year: 2026, Month: 10, Dom: 25}
		v.settle(v.sites[0], first, 35, 36)
		v.settle(v.sites[1], change, 3, 50)

		file := v.out()
		lines := strings.Split(strings.TrimSpace(file), "\n")
		if len(lines) != 1+3*1490 {
			t.Fatalf("%d lines", len(lines))
		}
		for _, want := range []string{
			v.mpans[0] + ",2026-10-05,35,2026-10-05T16:00:00Z,_A,SUPA,1.500,0.400,-1.100,",
			v.mpans[1] + ",2026-10-25,50,2026-10-25T23:30:00Z,_B,SUPB,1.500,0.400,-1.100,",
			v.mpans[2] + ",2026-10-01,1,2026-09-30T23:00:00Z,_C,SUPC,,,0,no flex event",
		} {
			if !strings.Contains(file, want) {
				t.Errorf("the file lacks %s", want)
			}
		}

		if _, err := v.in("II", file); err != nil {
			t.Fatal(err)
		}
		if s := v.sums("II"); s.Matched != s.HalfHours || s.HalfHours != 3*1490 || s.Own != -4400 || s.Settled != -4400 || s.Worth != 0 {
			t.Errorf("its own figures back: %+v", s)
		}

		sf := strings.Replace(file, "35,2026-10-05T16:00:00Z,_A,SUPA,1.500,0.400,-1.100,", "35,2026-10-05T16:00:00Z,_A,SUPA,1.500,0.400,-1.000,", 1)
		sf = strings.Replace(sf, v.mpans[2]+",2026-10-01,1,2026-09-30T23:00:00Z,_C,SUPC,,,0,", v.mpans[2]+",2026-10-01,1,2026-09-30T23:00:00Z,_C,SUPC,,,-0.250,", 1)
		for range 2 {
			if _, err := v.in("SF", sf); err != nil {
				t.Fatal(err)
			}
		}

		// 0.1 kWh less and 0.25 kWh that nobody knows of, at £100 a MWh: -1 p and +2.5 p.
		s := v.sums("SF")
		if s.Unmatched[market.WhyDifferent] != 1 || s.Unmatched[market.WhyNotHere] != 1 || s.Matched != s.HalfHours-2 || s.Worth != settle.PicoPounds(15_000_000_000) || s.Unpriced != 0 {
			t.Errorf("the second run: %+v", s)
		}
		if s := v.sums("II"); s.Matched != s.HalfHours {
			t.Errorf("the first run is what it was: %+v", s)
		}
		if s := v.sums("RF"); s.Unmatched[market.WhyDifferent] != 1 {
			t.Errorf("before a run the latest counts: %+v", s)
		}

		wrong := "mpan,settlement_date,settlement_period,delivered_kwh\n" + v.mpans[0] + ",2026-10-05,35,-9\n1299999999999,2026-10-05,1,1\n"
		if _, err := v.in("DF", wrong); flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), "1299999999999 (line 3)") {
			t.Errorf("a wrong point: %v", err)
		}
		if s := v.sums("DF"); s.Unmatched[market.WhyDifferent] != 1 || s.Settled != -4400+100-250 {
			t.Errorf("a report with a wrong point changed something: %+v", s)
		}

		for _, bad := range []string{"2026-10-25,51,1", "2026-10-05,0,1", "x,1,1", "2026-10-05,1,x"} {
			if _, err := v.in("II", "mpan,settlement_date,settlement_period,delivered_kwh\n"+v.mpans[0]+","+bad+"\n"); flex.KindOf(err) != flex.Invalid {
				t.Errorf("%s: %v", bad, err)
			}
		}
		if _, err := v.in("R9", file); flex.KindOf(err) != flex.Invalid {
			t.Errorf("no such run: %v", err)
		}
	})
}

// A month of 250 points, 10,000 with FLEXD_LONG, goes out and in again, each half-hour matched
// or explained.
func TestVolumes_Month(t *testing.T) {
	points := 250
	if os.Getenv("FLEXD_LONG") != "" {
		points = 10_000
	}
	v := newVolumes(t, storetest.SQLite(t), points)
	for i, site := range v.sites {
		v.settle(site, flex.Day{Year: 2026, Month: 10, Dom: 1 + i%31}, 33, 34, 40)
	}

	file := filepath.Join(t.TempDir(), "volumes.csv")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	took := func(what string) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%d points: %s in %.1f s, %d MiB from the system", points, what, time.Since(began).Seconds(), m.Sys>>20)
		began = time.Now()
	}

	n, err := v.service.WriteVolumes(t.Context(), v.org, october, f)
	if err != nil || f.Close() != nil || n != points*1490 {
		t.Fatalf("%d half-hours, %v", n, err)
	}
	took("volumes")
	rows, err := v.service.ImportReport(t.Context(), v.org, "SF", func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil || rows != points*1490 {
		t.Fatalf("%d rows, %v", rows, err)
	}

	took("import")
	s := v.sums("SF")
	took("comparison")
	if s.HalfHours != points*1490 || s.Matched != s.HalfHours || s.Own != flex.WattHours(points*3*-1100) {
		t.Errorf("%+v", s)
	}
}
