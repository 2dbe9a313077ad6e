package market_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/market"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

const (
	mpanA, mpanB, mpanC = "1200023305967", "1012345678903", "1099000010005"
	pairHead            = "import_mpan,export_mpan,bm_unit,gsp_group,supplier_mpid,from_date,to_date,largest_export_kwh\n"
)

func TestReadPairs(t *testing.T) {
	for name, tt := range map[string]struct{ rows, want string }{
		"one":                         {mpanA + "," + mpanB + ",v__abcd001,_C,OCTO,2026-10-01,,1.5", ""},
		"only what must be":           {mpanA + ",,,,,2026-10-01,,", ""},
		"one after the other":         {mpanA + ",,,,,2026-10-01,2026-10-14,\n" + mpanA + ",,,,,2026-10-15,,", ""},
		"a day too early":             {mpanA + ",,,,,2026-10-01,2026-10-15,\n" + mpanA + ",,,,,2026-10-15,,", "line 3: the metering point …5967 is in the pair of line 2"},
		"for ever, and then again":    {mpanA + ",,,,,2026-10-01,,\n" + mpanA + ",,,,,2027-10-15,,", "line 3"},
		"an export of two":            {mpanA + "," + mpanC + ",,,,2026-10-01,,\n" + mpanB + "," + mpanC + ",,,,2026-10-01,,", "line 3"},
		"an import that is an export": {mpanA + "," + mpanC + ",,,,2026-10-01,,\n" + mpanC + ",,,,,2026-10-01,,", "line 3"},
		"both the same":               {mpanA + "," + mpanA + ",,,,2026-10-01,,", "the same"},
		"a unit in two groups":        {mpanA + ",,V__A,_A,,2026-10-01,,\n" + mpanB + ",,V__A,_B,,2026-10-01,,", "line 3: the BM unit V__A is in GSP group _A by line 2"},
		"a unit that moved":           {mpanA + ",,V__A,_A,,2026-10-01,2026-10-02,\n" + mpanB + ",,V__A,_B,,2026-10-03,,", ""},
		"a wrong check digit":         {"1200023305968,,,,,2026-10-01,,", "line 2: import_mpan"},
		"a wrong group":               {mpanA + ",,,_Q,,2026-10-01,,", "gsp_group is like _A to _P"},
		"a supplier of five":          {mpanA + ",,,,OCTOP,2026-10-01,,", "supplier_mpid"},
		"no day":                      {mpanA + ",,,,,,,", "from_date"},
		"an end before it began":      {mpanA + ",,,,,2026-10-02,2026-10-01,", "to_date is before from_date"},
		"an export below nothing":     {mpanA + ",,,,,2026-10-01,,-1", "largest_export_kwh"},
		"no number":                   {mpanA + ",,,,,2026-10-01,,NaN", "largest_export_kwh"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := market.ReadPairs(strings.NewReader(pairHead + tt.rows + "\n"))
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || flex.KindOf(err) != flex.Invalid) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// A supplier that changes within the month is told apart by its days; sums are by GSP group and
// supplier, and by supplier alone; the list is replaced whole.
func TestVolumes_Pairs(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		v := newVolumes(t, url, 3)
		first, later := flex.Day{Year: 2026, Month: 10, Dom: 5}, flex.Day{Year: 2026, Month: 10, Dom: 25}
		v.settle(v.sites[0], first, 35, 36)
		v.settle(v.sites[0], later, 3, 50)
		v.settle(v.sites[1], later, 3)
		put := func(pairs ...flex.MeterPair) {
			t.Helper()
			if err := v.db.Write(t.Context(), v.org, func(tx *store.Tx) error { return tx.PutPairs(t.Context(), pairs) }); err != nil {
				t.Fatal(err)
			}
		}

		switched := flex.Day{Year: 2026, Month: 10, Dom: 20}.Start()
		span := market.MonthSpan(october)
		put(flex.MeterPair{Import: v.mpans[2], From: span.From}) // goes with the next list
		put(flex.MeterPair{Import: v.mpans[0], Export: mpanC, BMUnit: "V__A", SupplierMPID: "OLDS", From: span.From.AddDate(-1, 0, 0), To: switched},
			flex.MeterPair{Import: v.mpans[0], Export: mpanC, BMUnit: "V__B", GSPGroup: "_P", SupplierMPID: "SUPB", From: switched, LargestExport: flex.Some(flex.WattHours(2000))})

		file := v.out()
		for _, want := range []string{
			v.mpans[0] + ",2026-10-05,35,2026-10-05T16:00:00Z,_A,OLDS,1.500,0.400,-1.100,," + mpanC + ",V__A\n",
			v.mpans[0] + ",2026-10-25,50,2026-10-25T23:30:00Z,_P,SUPB,1.500,0.400,-1.100,," + mpanC + ",V__B\n",
			v.mpans[2] + ",2026-10-01,1,2026-09-30T23:00:00Z,_C,SUPC,,,0,no flex event,,\n",
		} {
			if !strings.Contains(file, want) {
				t.Errorf("the file lacks %s", want)
			}
		}

		c, err := v.service.Compare(t.Context(), v.org, october, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		sums := func(of map[string]*market.Sums) string {
			text := map[string]string{}
			for name, s := range of {
				text[name] = fmt.Sprintf("%d %d", s.HalfHours, s.Own)
			}
			return fmt.Sprint(text)
		}

		// 19 days of 48 half-hours before the change; 576+2 after it, for the autumn's hour.
		if got, want := sums(c.Groups), "map[_A OLDS:912 -2200 _B SUPB:1490 -1100 _C SUPC:1490 0 _P SUPB:578 -2200]"; got != want {
			t.Errorf("groups %s, want %s", got, want)
		}
		if got, want := sums(c.Suppliers), "map[OLDS:912 -2200 SUPB:2068 -3300 SUPC:1490 0]"; got != want {
			t.Errorf("suppliers %s, want %s", got, want)
		}

		all := c.All
		for _, part := range c.Suppliers {
			all.HalfHours -= part.HalfHours
			all.Own -= part.Own
			all.Matched -= part.Matched
		}
		if all.HalfHours != 0 || all.Own != 0 || all.Matched != 0 {
			t.Errorf("the suppliers do not add up: %+v", all)
		}

		points, err := v.service.Points(t.Context(), v.org, october)
		if err != nil || len(points) != 3 {
			t.Fatalf("%d points, %v", len(points), err)
		}
		for limit, want := range map[flex.WattHours]string{1999: market.EligibleNo, 2000: market.EligibleYes} {
			if got, why := points[0].Eligible(switched, flex.Some(limit)); got != want {
				t.Errorf("limit %d: %s %v", limit, got, why)
			}
		}
		if got, _ := points[1].Eligible(switched, flex.Some(flex.WattHours(1))); got != market.EligibleUnknown {
			t.Errorf("a figure that nobody told: %s", got)
		}
	})
}

// Two lists of pairs come at once: the second takes the place of the first.
func TestImportPairs_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		v := newVolumes(t, url, 1)
		locks, done := storetest.At(t, v.db, url), make(chan error, 1)
		second := func() {
			_, err := v.service.ImportPairs(
				context.Background(),
				v.org,
				strings.NewReader(pairHead+mpanB+",,,,,2026-10-01,,\n"),
				false,
			)
			done <- err
		}

		span := market.MonthSpan(october)
		err := v.db.Write(t.Context(), v.org, func(tx *store.Tx) error {
			if err := tx.PutPairs(t.Context(), []flex.MeterPair{{Import: mpanA, From: span.From}}); err != nil {
				return err
			}

			go second()
			for v.db.Engine() == "postgres" && len(done) == 0 && locks.Count(waiting) == 0 {
				runtime.Gosched()
			}
			return nil
		})
		if err == nil {
			err = <-done
		}
		if err != nil {
			t.Fatal(err)
		}

		err = v.db.Read(t.Context(), v.org, func(tx *store.Tx) error {
			pairs, err := tx.Pairs(t.Context(), span)
			if len(pairs) != 1 || pairs[0].Import != mpanB {
				t.Errorf("the pairs are %+v", pairs)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
