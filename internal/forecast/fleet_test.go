package forecast

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

// dayClass is 0 on working days, and another number on Saturdays and on Sundays.
func dayClass(d flex.Day) int {
	switch d.Weekday() {
	case time.Saturday:
		return 1
	case time.Sunday:
		return 2
	}
	return 0
}

// atOnce is a stay that draws an energy as soon as it begins.
func atOnce(from, to time.Time, energy flex.WattHours, power flex.Watts) *Stay {
	stay := flex.Span{From: from, To: to}
	full := from.Add(time.Duration(float64(energy) / float64(power) * float64(time.Hour)))
	return &Stay{
		Power: power, Open: []flex.Span{stay},
		Draws: []flex.Step{{Span: flex.Span{From: from, To: full}.Meet(stay), Limit: power}},
	}
}

// invent adds the stays of made-up cars: most come in the evening and stay the night, some come
// by day, fewer at weekends, and more from week to week.
func invent(h *FleetHistory, first flex.Day, days, cars int, r *rand.Rand) {
	for i := range days {
		d := first.Add(i)
		busy := (0.7 + 0.2*float64(i)/float64(days)) * math.Exp(0.1*r.NormFloat64())
		if dayClass(d) > 0 {
			busy *= 0.8
		}

		for range cars {
			if r.Float64() > busy*0.6 {
				continue
			}

			from, stays := 18+2.5*r.NormFloat64(), 12+2*r.NormFloat64()
			if r.Float64() < 0.2 {
				from, stays = 8+12*r.Float64(), 1+5*r.Float64()
			}

			from = min(max(from, 0), 23.9)
			begin := d.Start().Add(time.Duration(from * float64(time.Hour)))
			end := begin.Add(time.Duration(max(0.5, stays) * float64(time.Hour)))
			h.Add(atOnce(begin, end, flex.WattHours(2000+20000*r.Float64()*r.Float64()), 7200))
		}
	}
}

func made(seed uint64, days, cars, length int) (*FleetHistory, flex.Day) {
	first := flex.Day{Year: 2025, Month: 1, Dom: 1}
	h := NewFleetHistory(first, days, length)
	invent(h, first, days, cars, rand.New(rand.NewPCG(seed, 1)))
	return h, first.Add(days + Unended)
}

// TestFleetHistory_Ahead: what is forecast with a confidence comes as often, for each kind and
// for half-hours and windows, of a fleet that grows.
func TestFleetHistory_Ahead(t *testing.T) {
	for _, length := range []int{1, 4} {
		h, day := made(uint64(length), 240, 300, length)
		for _, k := range Kinds {
			a := h.Ahead(k, day, dayClass)
			if len(a.KW) != Slots+1-length || a.Judged.Days != JudgedMax {
				t.Fatalf("%v: %d windows, %d days", k, len(a.KW), a.Judged.Days)
			}

			for i, c := range Confidences[1:] {
				if kept := 100 * a.Judged.Kept[i+1]; math.Abs(kept-float64(c)) > 3 {
					t.Errorf("windows of %d, %v: P%d is kept in %.1f %%", length, k, c, kept)
				}
			}
		}
	}
}

// TestFleetHistory_AheadIsJudged: what is said of a day beforehand is what it is judged by when it is over, to the bit.
func TestFleetHistory_AheadIsJudged(t *testing.T) {
	h, day := made(9, 80, 30, 2)
	for _, k := range Kinds {
		judged := h.Ahead(k, day, dayClass).Judged.Past
		for _, d := range judged[len(judged)-20:] {
			said := h.Ahead(k, d.Day, dayClass).KW
			if !slices.Equal(said, d.KW) {
				t.Errorf("%v of %v: said %v, judged %v", k, d.Day, said, d.KW)
			}
		}
	}
}

// TestFleetHistory_AheadKeepsOrder: surer is never more, and nothing is negative.
func TestFleetHistory_AheadKeepsOrder(t *testing.T) {
	h, day := made(3, 60, 20, 1)
	for _, k := range Kinds {
		for _, kw := range h.Ahead(k, day, dayClass).KW {
			for i := range kw {
				if kw[i] < 0 || i > 0 && kw[i] > kw[i-1] {
					t.Fatalf("%v: %v", k, kw)
				}
			}
		}
	}

	if few, day := made(3, FewDays-1, 20, 1); few.Ahead(TurnDown, day, dayClass).KW != nil {
		t.Error("forecast from too few days")
	}
}

// TestFleetHistory_OneStay: what a car can leave out and draw more is exact, in half-hours
// and windows, on days when the clocks change too.
func TestFleetHistory_OneStay(t *testing.T) {
	for _, d := range []flex.Day{{Year: 2025, Month: 1, Dom: 15}, {Year: 2025, Month: 3, Dom: 30}, {Year: 2025, Month: 10, Dom: 26}} {
		six := d.Start().Add(flex.Day.Span(d).Len() - 6*time.Hour) // 18:00
		for length, want := range map[int][kinds]float64{
			1: {7.2, 7.2, 0}, // 18:00: all of it can be later
			8: {3.6, 1.8, 0}, // 18:00 to 22:00: 14.4 kWh are drawn, and an hour after it has room for 7.2
		} {
			h := NewFleetHistory(d, 1, length)
			h.Add(atOnce(six, six.Add(5*time.Hour), 14_400, 7200))

			for _, k := range Kinds {
				if got := h.values(k)[0][36]; math.Abs(got-want[k]) > 1e-9 {
					t.Errorf("%s, %d half-hours, %v: %g kW, want %g", d, length, k, got, want[k])
				}
			}

			up := h.values(TurnUp)[0]
			if length == 1 && math.Abs(up[42]-7.2) > 1e-9 { // 21:00
				t.Errorf("%s: %g kW more at 21:00", d, up[42])
			}
		}
	}
}

// TestFleetHistory_PlantedFault: forecasts that are a fifth too high are found by the
// reliability that is measured.
func TestFleetHistory_PlantedFault(t *testing.T) {
	h, day := made(5, 180, 300, 1)
	a := h.Ahead(FleetLoad, day, dayClass)
	high := Reliability{Past: a.Judged.Past}
	for _, d := range high.Past {
		for t := range d.KW {
			d.KW[t][2] *= 1.2
		}
	}

	high.sum()
	if high.Kept[2] > 0.885 {
		t.Errorf("P90 a fifth too high is kept in %.1f %%", 100*high.Kept[2])
	}
}

// SessionsEnv names a CSV of real sessions at homes, as docs/grid.md says where to get it.
const SessionsEnv = "FLEXD_HOME_SESSIONS"

// TestFleetHistory_RealHomes prints how forecasts of real homes did, month by month, each made
// from the days before alone. It asserts what docs/grid.md says.
func TestFleetHistory_RealHomes(t *testing.T) {
	path := os.Getenv(SessionsEnv)
	if path == "" {
		t.Skip(SessionsEnv + " names no file")
	}

	stays := readSessions(t, path)
	first := flex.Day{Year: 2018, Month: 2, Dom: 1}
	for _, until := range []flex.Day{{Year: 2019, Month: 6, Dom: 1}, {Year: 2019, Month: 9, Dom: 1}, {Year: 2019, Month: 12, Dom: 1}} {
		for _, length := range []int{1, 8} {
			h := NewFleetHistory(first, daysBetween(first, until), length)
			for _, s := range stays {
				h.Add(s)
			}

			for _, k := range Kinds {
				judged := h.Ahead(k, until.Add(Unended), dayClass).Judged
				t.Logf("%d days before %s, windows of %d half-hours, %v: %s", judged.Days, until, length, k, inWords(judged))
				t.Logf("  the same time of the week, 8 weeks: %s", inWords(weekly(h.values(k), judged)))
				if k == FleetLoad {
					logHindsight(t, h, judged)
				}

				for i, c := range Confidences[1:4] {
					if kept := 100 * judged.Kept[i+1]; k == FleetLoad && length == 1 && math.Abs(kept-float64(c)) > 1 {
						t.Errorf("P%d is kept in %.1f %%", c, kept)
					}
				}
			}
		}
	}
}

// inWords says what a reliability is.
func inWords(r Reliability) (text string) {
	for i, c := range Confidences {
		text += fmt.Sprintf(" P%d kept %.1f %%, volume %.1f %%;", c, 100*r.Kept[i], 100*r.Volume[i])
	}
	return text
}

// weekly judges what the same time of the week came to in eight weeks, on the same days.
func weekly(came [][]float64, of Reliability) (r Reliability) {
	first := len(came) - len(of.Past)
	for n, d := range of.Past {
		kw := make([][numConfidences]float64, len(d.Came))
		for t := range kw {
			var past []weighted
			for week := 1; week <= 8; week++ {
				past = append(past, weighted{came[first+n-7*week][t], 1})
			}

			slices.SortFunc(past, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
			for i, c := range Confidences { // between the two that are nearest
				at := (1 - float64(c)/100) * float64(len(past)-1)
				low := past[int(at)].value
				high := past[min(int(at)+1, len(past)-1)].value
				kw[t][i] = low + (at-math.Floor(at))*(high-low)
			}
		}

		r.Past = append(r.Past, Judged{d.Day, kw, d.Came})
	}

	r.sum()
	return r
}

// readSessions reads columns plugin_time, plugout_time (by the clock on the wall) and
// energy_kwh. Cars draw 3.6 kW as soon as they come, as most of these did.
func readSessions(t *testing.T, path string) (stays []*Stay) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}

	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}

	for row, err := range csvfile.Read(in, "plugin_time", "plugout_time", "energy_kwh") {
		if err != nil {
			t.Fatal(err)
		}

		from, err := time.ParseInLocation(time.DateTime, row.Get("plugin_time"), flex.London)
		if err != nil {
			t.Fatal(err)
		}

		kwh, err := strconv.ParseFloat(row.Get("energy_kwh"), 64)
		if err != nil {
			t.Fatal(err)
		}

		to, err := time.ParseInLocation(time.DateTime, row.Get("plugout_time"), flex.London)
		if err != nil || !to.After(from) { // a few are not known: they stayed until they were full
			to = from.Add(time.Duration(kwh / 3.6 * float64(time.Hour)))
		}

		stays = append(stays, atOnce(from, to, flex.FromKWh(kwh), 3600))
	}

	return stays
}

// BenchmarkFleetHistory_Ahead counts a day of 100,000 cars into a history of 180 and forecasts
// the next: load, turn-down and turn-up of every half-hour.
func BenchmarkFleetHistory_Ahead(b *testing.B) {
	first := flex.Day{Year: 2025, Month: 1, Dom: 1}
	r := rand.New(rand.NewPCG(1, 1))
	stays := make([]*Stay, 100_000)
	for i := range stays {
		from := first.Add(179).Start().Add(time.Duration(r.IntN(24*3600)) * time.Second)
		stays[i] = atOnce(from, from.Add(time.Duration(1+r.IntN(14))*time.Hour), flex.WattHours(2000+r.IntN(20000)), 7200)
	}

	for b.Loop() {
		b.StopTimer()
		h, day := made(1, 180, 50, 1)
		b.StartTimer()

		for _, s := range stays {
			h.Add(s)
		}
		for _, k := range Kinds {
			h.Ahead(k, day, dayClass)
		}
	}
}
