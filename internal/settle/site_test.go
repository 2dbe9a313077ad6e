package settle_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// randomSite is a site with its devices' readings and the flex events of a day.
type randomSite struct {
	day      flex.Day
	readings []flex.Reading
	limits   settle.Limits
	events   []settle.EventPart
	eventDay map[flex.Day]bool

	of    map[deviceDay][]flex.Reading // by device and UTC day
	gives map[flex.AssetID]bool        // devices that read an export register
}

type deviceDay struct {
	id  flex.AssetID
	day int64
}

// index finds the readings of a device by the days that they touch.
func (s *randomSite) index() {
	s.of, s.gives = map[deviceDay][]flex.Reading{}, map[flex.AssetID]bool{}
	for _, r := range s.readings {
		days := map[int64]bool{r.From.Unix() / 86400: true, r.To.Unix() / 86400: true, (r.To.Unix() - 1) / 86400: true}
		for d := range days {
			s.of[deviceDay{r.AssetID, d}] = append(s.of[deviceDay{r.AssetID, d}], r)
		}
		s.gives[r.AssetID] = s.gives[r.AssetID] || r.Label == flex.BoundaryExportRegister
	}
}

var siteLabels = []flex.Label{flex.BoundaryImportRegister, flex.ProvisionalConsumption, flex.BoundaryImportPower}

// drawSite draws one to four devices that read a boundary by any label, that come and go,
// begin anew, leave holes and jump, and events whose half-hours mostly meet.
func drawSite(r *rand.Rand) randomSite {
	days := []flex.Day{{Year: 2025, Month: 3, Dom: 30}, {Year: 2025, Month: 10, Dom: 26}, {Year: 2025, Month: 10, Dom: 28}, {Year: 2025, Month: 4, Dom: 3}, {Year: 2025, Month: 6, Dom: 11}}
	s := randomSite{day: days[r.IntN(len(days))], limits: settle.Limits{Import: 11_500, Export: 4_000}, eventDay: map[flex.Day]bool{}}
	first := 1 + r.IntN(s.day.Periods()-5)
	for range 1 + r.IntN(4) {
		from := first + r.IntN(3)
		to := min(from+r.IntN(3), s.day.Periods())
		e := settle.EventPart{First: from, Last: to, Most: flex.WattHours(500 * r.IntN(10))}
		for i := range e.Event {
			e.Event[i] = byte(r.IntN(256))
		}

		for range to - from + 1 {
			e.Meant = append(e.Meant, flex.WattHours(r.IntN(7401)-3700))
		}
		s.events = append(s.events, e)
	}

	for back := 1; back <= 20; back++ {
		if r.IntN(12) == 0 {
			s.eventDay[s.day.Add(-back)] = true
		}
	}
	for n := range 1 + r.IntN(4) {
		s.device(r, flex.AssetID{byte(9 - n)}, first)
	}
	s.index()
	return s
}

// device draws the readings of one device around the events' time of each day.
func (s *randomSite) device(
	r *rand.Rand,
	id flex.AssetID,
	first int,
) {
	label := siteLabels[r.IntN(3)]
	exports := r.IntN(3) == 0
	minutes := []int{1, 5, 10, 30, 40}[r.IntN(5)]
	if label == flex.BoundaryImportPower && minutes == 1 {
		minutes = 15 // a minute makes the test slow
	}

	since, until := 30, 0
	if r.IntN(3) == 0 { // it was replaced, or replaces another
		since, until = r.IntN(20), 0
	} else if r.IntN(4) == 0 {
		until = 1 + r.IntN(6)
	}
	mark, out := flex.Micro(r.IntN(1e9)), flex.Micro(r.IntN(1e9))
	hole := func() bool { return r.IntN(60) == 0 }

	for back := since; back >= until; back-- {
		day := s.day.Add(-back)
		begin := day.Start().Add(time.Duration(max(0, first-3)) * flex.HalfHour)
		if r.IntN(40) == 0 { // it begins anew
			mark, out = 0, 0
		}

		end := begin.Add(10 * flex.HalfHour)
		for at := begin; !at.After(end); {
			length := flex.HalfHour
			if label == flex.BoundaryImportPower {
				length = time.Duration(minutes) * time.Minute
			}

			next := at.Add(length)
			if !hole() {
				s.tell(r, id, label, flex.Span{From: at, To: next}, &mark, &out, exports)
			}
			at = next
		}
	}
}

func (s *randomSite) tell(
	r *rand.Rand,
	id flex.AssetID,
	label flex.Label,
	span flex.Span,
	mark, out *flex.Micro,
	exports bool,
) {
	jump := flex.Micro(1)
	if r.IntN(150) == 0 {
		jump = 20
	}

	reading := flex.Reading{AssetID: id, Label: label, Span: span}
	switch label {
	case flex.BoundaryImportRegister:
		reading.From = span.To
		*mark += flex.Micro(r.IntN(3_000_000)) * jump
		reading.Value = *mark

		if exports && r.IntN(60) > 0 {
			*out += flex.Micro(r.IntN(900_000)) * jump
			s.readings = append(s.readings, flex.Reading{AssetID: id, Label: flex.BoundaryExportRegister, Span: reading.Span, Value: *out})
		}
	case flex.ProvisionalConsumption:
		reading.Value = flex.Micro(r.IntN(3_000_000)) * jump
	default:
		reading.Value = flex.Micro(r.IntN(8_000_000)-1_500_000) * jump
	}
	s.readings = append(s.readings, reading)
}

// settled settles every event of the site, as the service does.
func (s *randomSite) settled(t *testing.T) (results []*settle.Result, cases []*settle.Case) {
	meter := settle.NewMeter(settle.Boundary, s.readings, s.limits)
	for i, e := range s.events {
		c := &settle.Case{
			Event: e.Event, Day: s.day, First: e.First, Last: e.Last, Meant: e.Meant, Most: e.Most,
			Rule: settle.DefaultRule, Terms: settle.DefaultTerms, Metering: settle.Boundary,
		}
		for d := range s.eventDay {
			c.EventDays = append(c.EventDays, d)
		}
		for n := 1; n <= s.day.Periods(); n++ {
			c.Prices = append(c.Prices, flex.PricedPeriod{Period: s.day.Period(n), Price: 181_990_000, Known: true})
		}

		for k, o := range s.events {
			if k != i && s.meets(i, k) {
				c.Others = append(c.Others, o)
			}
		}
		if !meter.Give(c) {
			c.Metered = nil
		}
		cases, results = append(cases, c), append(results, mustSettle(t, c))
	}
	return results, cases
}

// meets reports whether two events are settled together: their half-hours meet, through
// others too.
func (s *randomSite) meets(i, k int) bool {
	in := map[int]bool{i: true}
	for range s.events {
		for a := range s.events {
			for b := range s.events {
				if in[a] && s.events[a].First <= s.events[b].Last && s.events[b].First <= s.events[a].Last {
					in[b] = true
				}
			}
		}
	}
	return in[k]
}

// halfHourOf looks for what one device tells of one half-hour by one label.
func (s *randomSite) halfHourOf(
	id flex.AssetID,
	label flex.Label,
	p flex.Period,
) (int64, bool) {
	var sum, covered int64 // exact in micro-kilowatt-hours times 3600
	from, to, outFrom, outTo := int64(-1), int64(-1), int64(-1), int64(-1)
	exporter := s.exporter(id)
	exported := s.gives[exporter]
	day := p.Start().Unix() / 86400

	for _, r := range s.of[deviceDay{exporter, day}] {
		if r.Label == flex.BoundaryExportRegister && r.To.Equal(p.Start()) {
			outFrom = int64(r.Value)
		}
		if r.Label == flex.BoundaryExportRegister && r.To.Equal(p.End()) {
			outTo = int64(r.Value)
		}
	}

	for _, r := range s.of[deviceDay{id, day}] {
		if r.Label != label {
			continue
		}

		switch {
		case label == flex.BoundaryImportRegister && r.To.Equal(p.Start()):
			from = int64(r.Value)
		case label == flex.BoundaryImportRegister && r.To.Equal(p.End()):
			to = int64(r.Value)
		case label == flex.ProvisionalConsumption && r.From.Equal(p.Start()) && r.To.Equal(p.End()):
			sum, covered = int64(r.Value)*3600, 1800
		case label == flex.BoundaryImportPower:
			seconds := min(r.To.Unix(), p.End().Unix()) - max(r.From.Unix(), p.Start().Unix())

			sum += int64(r.Value) * max(0, seconds)
			covered += max(0, seconds)
		}
	}

	if label == flex.BoundaryImportRegister {
		known := from >= 0 && to >= from && (!exported || outFrom >= 0 && outTo >= outFrom)
		sum, covered = (to-from)*3600, 0
		if exported {
			sum -= (outTo - outFrom) * 3600
		}
		if known {
			covered = 1800
		}
	}

	exact := big.NewRat(sum, 3600*1000)
	half := big.NewRat(1, 2)
	if sum < 0 {
		half.Neg(half)
	}
	exact.Add(exact, half)
	rounded := new(big.Int).Quo(exact.Num(), exact.Denom()).Int64()
	return rounded, covered == 1800 && rounded <= int64(s.limits.Import) && -rounded <= int64(s.limits.Export)
}

// exporter returns the device whose export register counts for one's import.
func (s *randomSite) exporter(id flex.AssetID) flex.AssetID {
	if s.gives[id] {
		return id
	}
	for n := range byte(10) {
		if s.gives[flex.AssetID{n}] {
			return flex.AssetID{n}
		}
	}
	return flex.AssetID{}
}

// fault finds what is wrong with how a site was settled, by looking at each half-hour alone.
func (s *randomSite) fault(results []*settle.Result, cases []*settle.Case) string {
	deviation, parts := map[int]int64{}, map[int]int64{}
	for i, r := range results {
		c := cases[i]

		for _, p := range r.Periods {
			if p.Read {
				if e, ok := s.reported(c.Label, s.day.Period(p.Period)); !ok || !e[int64(p.Metered)] {
					return fmt.Sprintf("period %d: %d Wh that no device tells by %s, of %v", p.Period, p.Metered, c.Label, e)
				}
				if p.Metered > s.limits.Import || -p.Metered > s.limits.Export {
					return fmt.Sprintf("period %d: %d Wh is beyond the connection", p.Period, p.Metered)
				}
			}
			if !p.Known || !p.Compared {
				continue
			}

			if most := s.events[i].Most; most > 0 && max(p.Flex, -p.Flex) > most {
				return fmt.Sprintf("period %d: a part of %d Wh where the asset can move %d", p.Period, p.Flex, most)
			}
			want := int64(p.Metered-p.Baseline) - int64(p.Unassigned)
			if d, known := deviation[p.Period]; known && d != want {
				return fmt.Sprintf("period %d has two deviations, %d and %d Wh", p.Period, d, want)
			}
			deviation[p.Period] = want
			parts[p.Period] += int64(p.Flex)
		}

		if text := s.baselineFault(c, r); text != "" {
			return text
		}
	}

	for n, d := range deviation {
		if parts[n] != d {
			return fmt.Sprintf("period %d: the parts add up to %d of %d Wh", n, parts[n], d)
		}
	}
	return ""
}

// reported lists what the devices tell of a half-hour by a label.
func (s *randomSite) reported(label flex.Label, p flex.Period) (map[int64]bool, bool) {
	values := map[int64]bool{}
	for n := range byte(10) {
		if e, known := s.halfHourOf(flex.AssetID{n}, label, p); known {
			values[e] = true
		}
	}
	return values, len(values) > 0
}

// baselineFault checks the mean over the days used, each of whose half-hours must be what
// some device tells of it.
func (s *randomSite) baselineFault(c *settle.Case, r *settle.Result) string {
	for _, p := range r.Periods {
		if !p.Compared || settle.ClockChange(s.day) {
			continue
		}

		least, most := int64(0), int64(0)
		for _, d := range r.Used {
			if s.eventDay[d] {
				return fmt.Sprintf("%s held an event", d)
			}
			values, ok := s.reported(c.Label, d.Period(p.Period))
			if !ok {
				return fmt.Sprintf("%s period %d counts, and no device tells it by %s", d, p.Period, c.Label)
			}

			low, high := int64(1<<40), int64(-1<<40)
			for e := range values {
				low, high = min(low, e), max(high, e)
			}
			least, most = least+low, most+high
		}

		n := int64(len(r.Used))
		if int64(p.Baseline)*n < least-n || int64(p.Baseline)*n > most+n {
			return fmt.Sprintf("period %d: a baseline of %d Wh, not between %d/%d and %d/%d", p.Period, p.Baseline, least, n, most, n)
		}
	}
	return ""
}

// Ten thousand random sites: the parts of each half-hour add up to its deviation, nothing is
// beyond the connection, and every figure is what one device tells. FLEXD_LONG draws them all.
func TestSites(t *testing.T) {
	sites := 1_000
	if os.Getenv("FLEXD_LONG") != "" {
		sites = 10_000
	}
	several, partly := 0, 0
	for seed := range sites {
		s := drawSite(rand.New(rand.NewPCG(uint64(seed), 36)))
		results, cases := s.settled(t)
		if text := s.fault(results, cases); text != "" {
			t.Fatalf("site %d: %s", seed, text)
		}

		for i, r := range results {
			if r.Flex != 0 && len(cases[i].Others) > 0 {
				several++
			}
			for _, p := range r.Periods {
				if p.Unassigned != 0 {
					partly++
				}
			}
		}

		if seed%10 == 0 {
			s.planted(t, results, cases)
		}
	}

	if several < sites/2 || partly < sites/10 {
		t.Errorf("%d events settled with others, %d half-hours partly unassigned: the sites try too little", several, partly)
	}
}

// planted has the reference find a watt-hour too many, and energy read across two devices.
func (s *randomSite) planted(
	t *testing.T,
	results []*settle.Result,
	cases []*settle.Case,
) {
	for i, r := range results {
		for k, p := range r.Periods {
			if !p.Known || !p.Compared || p.Flex == s.events[i].Most || p.Flex == 0 {
				continue
			}
			r.Periods[k].Flex++
			if s.fault(results, cases) == "" {
				t.Fatal("the reference misses a watt-hour that nobody moved")
			}

			r.Periods[k].Flex--
			r.Periods[k].Metered += 7
			r.Periods[k].Baseline += 7
			if s.fault(results, cases) == "" {
				t.Fatal("the reference misses a metered value that no device tells")
			}
			return
		}
	}
}
