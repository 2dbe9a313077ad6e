package settle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// oneHalfHour says what readings give a half-hour, by looking for it alone.
func oneHalfHour(
	m settle.Metering,
	p flex.Period,
	all []flex.Reading,
) (e flex.Micro, known bool) {
	mark := func(label flex.Label, at time.Time) (v flex.Micro, known bool) {
		for _, r := range all {
			if r.Label == label && r.To.Equal(at) {
				v, known = r.Value, true
			}
		}
		return v, known
	}

	rise := func(label flex.Label) (flex.Micro, bool) {
		replaced := false
		before, read := mark(label, p.Start())
		after, too := mark(label, p.End())
		for _, r := range all { // the last reading of an instant counts
			if r.Label == label && r.To.Equal(p.End()) {
				replaced = r.Restarted
			}
		}
		return after - before, read && too && after >= before && !replaced
	}

	export := slices.ContainsFunc(all, func(r flex.Reading) bool { return r.Label == flex.BoundaryExportRegister })
	for _, label := range settle.Labels(m) {
		switch label {
		case flex.ChargerEnergy, flex.ProvisionalConsumption:
			for _, r := range all {
				if r.Label == label && r.From.Equal(p.Start()) && r.To.Equal(p.End()) {
					e, known = r.Value, true
				}
			}
		case flex.ChargerRegister, flex.BoundaryImportRegister:
			e, known = rise(label)

			if known && export && m == settle.Boundary {
				var out flex.Micro
				out, known = rise(flex.BoundaryExportRegister)
				e -= out
			}
		}

		if known {
			return e, true
		}
	}
	return 0, false
}

// All half-hours at once say the same as each looked for alone.
func TestHalfHours_EachAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]settle.Metering{settle.Boundary, settle.Asset}).Draw(t, "metering")
		first := flex.PeriodAt(time.Date(2025, 10, 25, 20, 0, 0, 0, time.UTC)) // the clocks go back that night
		const periods = 12
		var all []flex.Reading

		for range rapid.IntRange(0, 30).Draw(t, "readings") {
			r := flex.Reading{Label: rapid.SampledFrom(settle.Labels(m)).Draw(t, "label"), Value: flex.Micro(rapid.IntRange(0, 5000).Draw(t, "value") * 500)}
			if r.Label == flex.BoundaryImportPower || r.Label == flex.BatteryInverterPower {
				continue
			}
			r.Restarted = rapid.IntRange(0, 3).Draw(t, "anew") == 0
			r.From = first.Add(rapid.IntRange(0, periods-2).Draw(t, "at")).Start()
			r.To = r.From.Add(rapid.SampledFrom([]time.Duration{flex.HalfHour, flex.HalfHour, time.Hour, 0, 7 * time.Minute}).Draw(t, "length"))
			all = append(all, r)
		}

		got := map[flex.Period]flex.WattHours{}
		for _, d := range settle.HalfHours(m, all) {
			for n := range d.Wh {
				if e, known := d.At(n + 1); known {
					got[d.Day.Period(n+1)] = e
				}
			}
		}

		for i := range periods {
			p := first.Add(i)
			e, known := oneHalfHour(m, p, all)
			want, have := "-", "-"
			if known {
				want = fmt.Sprint(int64(e+500) / 1000)
				if e < 0 {
					want = fmt.Sprint(-(int64(-e+500) / 1000))
				}
			}

			if e, known := got[p]; known {
				have = fmt.Sprint(int64(e))
			}
			if have != want {
				t.Fatalf("%s: %s Wh, want %s, of %v", p.Start(), have, want, all)
			}
			delete(got, p)
		}
		if len(got) > 0 {
			t.Fatalf("half-hours that nothing was read of: %v", got)
		}
	})
}
