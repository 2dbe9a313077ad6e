package operations

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// outlookPeriods is how many half-hours ahead the fleet is shown: 24 hours.
const outlookPeriods = 48

// slackTime is the charging time by which a schedule may fall short and still count as
// meeting its need: schedules are cut to whole minutes.
const slackTime = time.Minute

// Outlook is what the plugged-in assets will draw, by half-hours, from
// an instant on. The first is the rest of the running half-hour. Instants are whole seconds
// since 1970, which are faster for a large fleet.
type Outlook struct {
	now   time.Time
	start int64 // the first instant
	// of the half-hours; the first is before the start
	edges [outlookPeriods + 1]int64

	plugged      int
	planned      int
	charging     int
	drawing      flex.Watts // by the schedules, now
	short        [causes]shortfall
	unplanned    int
	unplannedIDs []flex.AssetID
	cutShort     []flex.AssetID // whose site was not planned as one, or not to the end
	refused      []flex.AssetID // whose site's plan was refused

	sums       [outlookPeriods]halfHour
	dispatched perHalfHour // what dispatches ask of batteries, positive from the grid
	batteries  perHalfHour // the power of batteries, by plan or dispatch
	// of it, by how much they could draw less, and more, in each half-hour alone
	batteriesLess perHalfHour
	batteriesMore perHalfHour
	heat          perHalfHour // what tanks and heat pumps draw by their plans
	permitted     map[flex.Tariff]*perHalfHour

	behind map[flex.AssetID]store.FusedCar // plugged in behind a main fuse that was set; read before any is added
	fused  map[flex.SiteID]*fusedHours     // of their sites, until all are counted
}

// perHalfHour is a quantity of each half-hour.
type perHalfHour [outlookPeriods]int64

// halfHour is energy of one half-hour in watt-seconds.
type halfHour struct {
	plan int64 // by the schedules
	// the same energy, had each asset begun at full power when it was plugged in
	unmoved int64
	less    int64 // the part of the plan that could be put off with the need still met
	// what could be drawn beyond the plan, brought forward from later
	more int64
}

// Cause is why an asset will not have what it needs by ready-by.
type Cause int

// The causes of a shortfall.
const (
	// the time left is too short, even at full power
	ShortOfTime Cause = iota
	// the off-peak time left is too short, and peak may not be used
	ShortOfOffPeak
	// there is time, but a cap or another limit leaves no headroom
	ShortOfHeadroom
	causes
)

// shortfall is the assets that fall short for one cause.
type shortfall struct {
	count  int
	energy flex.WattHours
	// those that lack most, so many at most as an exception names
	worst []shortAsset
	ids   []flex.AssetID // all of them
}

type shortAsset struct {
	id      flex.AssetID
	missing flex.WattHours
}

func (s *shortfall) add(id flex.AssetID, missing flex.WattHours) {
	s.count++
	s.energy += missing
	s.ids = append(s.ids, id)
	s.worst = append(s.worst, shortAsset{id, missing})
	if len(s.worst) >= 2*examplesMax {
		s.trim()
	}
}

func (s *shortfall) join(o shortfall) {
	s.count += o.count
	s.energy += o.energy
	s.ids = append(s.ids, o.ids...)
	s.worst = append(s.worst, o.worst...)
	s.trim()
}

// trim keeps the assets that lack most, in that order.
func (s *shortfall) trim() {
	slices.SortFunc(s.worst, func(a, b shortAsset) int {
		return cmp.Or(
			cmp.Compare(b.missing, a.missing),
			bytes.Compare(a.id[:], b.id[:]),
		)
	})

	s.worst = s.worst[:min(len(s.worst), examplesMax)]
}

// Plugged counts the assets that are plugged in.
func (f *Outlook) Plugged() int { return f.plugged }

// Charging counts the assets that charge by plan at this moment.
func (f *Outlook) Charging() int { return f.charging }

// Unplanned counts the assets that are plugged in without a schedule.
func (f *Outlook) Unplanned() int { return f.unplanned }

// Drawing is the power that is drawn by plan at this moment.
func (f *Outlook) Drawing() flex.Watts { return f.drawing }

// Now is the instant that the outlook begins at, by the organisation's clock.
func (f *Outlook) Now() time.Time { return f.now }

// Short counts the assets that will not have what they need by ready-by.
func (f *Outlook) Short() int {
	var n int
	for _, s := range f.short {
		n += s.count
	}
	return n
}

func newOutlook(now time.Time) *Outlook {
	f := &Outlook{
		now:       now,
		start:     now.Unix(),
		permitted: map[flex.Tariff]*perHalfHour{},
		fused:     map[flex.SiteID]*fusedHours{},
	}

	first := flex.PeriodAt(now)
	for i := range f.edges {
		f.edges[i] = first.Add(i).Start().Unix()
	}

	return f
}

// from is the start of half-hour i, or now if that is past (seconds since 1970).
func (f *Outlook) from(i int) int64 { return max(f.start, f.edges[i]) }

// span is the time that the outlook covers.
func (f *Outlook) span() flex.Span {
	return flex.Span{
		From: time.Unix(f.start, 0),
		To:   time.Unix(f.end(), 0),
	}
}

func (f *Outlook) end() int64 { return f.edges[outlookPeriods] }

// add adds a plugged-in asset.
func (f *Outlook) add(p *store.Plugged) {
	f.plugged++
	if !p.Planned {
		f.unplanned++
		f.unplannedIDs = append(f.unplannedIDs, p.AssetID)
		return
	}

	f.planned++
	if p.CutShort {
		f.cutShort = append(f.cutShort, p.AssetID)
	}
	if p.PlanRefused {
		f.refused = append(f.refused, p.AssetID)
	}

	var own perHalfHour
	ready := p.ReadyBy.Unix()
	total := int64(p.Delivered) * 3600
	byReady := total

	for _, s := range p.Steps {
		w := int64(min(s.Limit, p.Power))
		if w == 0 {
			continue
		}

		from, to := s.From.Unix(), s.To.Unix()
		total += w * (to - from)
		byReady += w * max(0, min(to, ready)-from)

		if from <= f.start && f.start < to {
			f.charging++
			f.drawing += flex.Watts(w)
		}

		f.spread(&own, from, to, w)
	}

	f.countShort(p, byReady)
	if p.Power > 0 {
		f.addUnmoved(p, total)
	}

	f.addBand(p, &own)
}

// countShort counts the asset as short if the energy that it has by ready-by is less than its
// need. Once that time is past nobody can do anything about it, and the asset may charge
// freely.
func (f *Outlook) countShort(p *store.Plugged, byReady int64) {
	if !p.ReadyBy.After(f.now) {
		return
	}

	missing := int64(p.Need)*3600 - byReady
	slack := int64(p.Power) * int64(slackTime/time.Second)
	if missing > slack {
		f.short[f.cause(p, missing)].add(
			p.AssetID,
			flex.WattHours(missing/3600),
		)
	}
}

// cause returns why an asset falls short: the time until ready-by does not suffice even
// at full power, or the permitted part of it does not, or otherwise a limit leaves no headroom.
func (f *Outlook) cause(p *store.Plugged, missing int64) Cause {
	ready := p.ReadyBy.Unix()
	ahead := max(0, ready-f.start)

	var planned int64 // watt-seconds from now on
	for _, s := range p.Steps {
		from, to := max(s.From.Unix(), f.start), min(s.To.Unix(), ready)
		planned += int64(min(s.Limit, p.Power)) * max(0, to-from)
	}

	wanted := planned + missing
	if wanted > int64(p.Power)*ahead {
		return ShortOfTime
	}

	var permitted int64
	for i, seconds := range f.offPeak(p.Tariff) {
		if from := f.from(i); from < ready {
			permitted += min(seconds, ready-from)
		}
	}

	if ready <= f.end() && wanted > int64(p.Power)*permitted {
		return ShortOfOffPeak
	}

	return ShortOfHeadroom
}

// spread adds the energy of a power from an instant to another to the half-hours that they
// touch.
func (f *Outlook) spread(sum *perHalfHour, from, to, w int64) {
	from, to = max(from, f.start), min(to, f.end())
	if from >= to {
		return
	}

	for i := (from - f.edges[0]) / 1800; from < to; i++ {
		next := min(to, f.edges[i+1])
		sum[i] += w * (next - from)
		from = next
	}
}

// addDispatch adds the power that a dispatch asks of a battery.
func (f *Outlook) addDispatch(o *store.BatteryOrder) {
	f.spread(&f.dispatched, o.From.Unix(), o.To.Unix(), int64(o.Power))
}

// addHeat adds what a tank or a heat pump draws by its plan.
func (f *Outlook) addHeat(d *store.HeatDraw) {
	f.spread(&f.heat, d.From.Unix(), d.To.Unix(), int64(d.Power))
}

// addUnmoved adds what the asset would draw without flexd: the energy of its schedule,
// at full power from the plug-in on.
func (f *Outlook) addUnmoved(p *store.Plugged, total int64) {
	from := p.PluggedInAt.Unix()
	to := from + total/int64(p.Power)
	if to <= f.start {
		return
	}

	var own perHalfHour
	f.spread(&own, from, to, int64(p.Power))

	for i := range own {
		f.sums[i].unmoved += own[i]
	}
}

// addBand adds the plan, and by how much it could change in each half-hour, taken by itself.
// Energy can be put off as far as there is headroom in the later off-peak time before
// ready-by, and later energy can be brought forward as far as the asset's power allows.
func (f *Outlook) addBand(p *store.Plugged, own *perHalfHour) {
	var headroom, later int64
	offPeak := f.offPeak(p.Tariff)
	ready, power := p.ReadyBy.Unix(), int64(p.Power)
	now := [2]int64{p.ChargeNow.From.Unix(), p.ChargeNow.To.Unix()}
	site := f.at(p.AssetID)

	for i := outlookPeriods - 1; i >= 0; i-- {
		from, to := f.from(i), f.edges[i+1]
		h := &f.sums[i]
		h.plan += own[i]
		site.count(i, own[i], 0)

		if from >= ready {
			continue
		}

		most := power * min(offPeak[i], ready-from)
		spare := max(0, most-own[i])

		if now[0] >= to || now[1] <= from { // what the user wants at once is not moved
			h.less += min(own[i], headroom)
			h.more += min(spare, later)
			site.count(i, 0, min(spare, later))
		}

		headroom += spare
		later += min(own[i], most)
	}
}

// offPeak returns the seconds of each half-hour that a tariff permits charging in.
func (f *Outlook) offPeak(t flex.Tariff) *perHalfHour {
	if got := f.permitted[t]; got != nil {
		return got
	}

	got := new(perHalfHour)

	spans, stated := tariff.OffPeak(t, flex.Span{
		From: f.now,
		To:   time.Unix(f.end(), 0),
	})
	if !stated {
		f.spread(got, f.start, f.end(), 1)
	}

	for _, s := range spans {
		f.spread(got, s.From.Unix(), s.To.Unix(), 1)
	}

	f.permitted[t] = got

	return got
}

// join adds another organisation's forecast, half-hour by half-hour.
func (f *Outlook) join(o *Outlook) {
	f.plugged += o.plugged
	f.planned += o.planned
	f.charging += o.charging
	f.drawing += o.drawing
	f.unplanned += o.unplanned
	f.unplannedIDs = append(f.unplannedIDs, o.unplannedIDs...)
	f.cutShort = append(f.cutShort, o.cutShort...)
	f.refused = append(f.refused, o.refused...)
	for c := range f.short {
		f.short[c].join(o.short[c])
	}

	f.joinFused(o)
	f.joinBatteries(o)
	for i := range f.sums {
		f.sums[i].plan += o.sums[i].plan
		f.sums[i].unmoved += o.sums[i].unmoved
		f.sums[i].less += o.sums[i].less
		f.sums[i].more += o.sums[i].more
		f.dispatched[i] += o.dispatched[i]
		f.heat[i] += o.heat[i]
	}
}

// Line is a half-hour of the forecast in average kilowatts.
type Line struct {
	Start   time.Time
	Planned float64
	Unmoved float64
	Lowest  float64
	Highest float64
	// what dispatches ask batteries for, positive from the grid; it is in none of the others
	Ordered float64
	// what batteries are expected to draw, by their plans, or by a dispatch in place of the
	// plan; negative gives. It is in neither of planned and heat
	Batteries float64
	// the least and the most that batteries could draw in this half-hour alone
	BatteriesLowest  float64
	BatteriesHighest float64
	// what tanks and heat pumps draw by their plans; it is in none of the others
	Heat float64
}

// Lines returns the half-hours in average kilowatts.
func (f *Outlook) Lines() []Line {
	out := make([]Line, outlookPeriods)
	for i, h := range f.sums {
		length := max(1, f.edges[i+1]-f.from(i))
		kilowatts := func(wattSeconds int64) float64 {
			return float64(wattSeconds/length/100) / 10
		}

		out[i] = Line{
			Start:     time.Unix(f.from(i), 0).UTC(),
			Planned:   kilowatts(h.plan),
			Unmoved:   kilowatts(h.unmoved),
			Lowest:    kilowatts(h.plan - h.less),
			Highest:   kilowatts(h.plan + h.more),
			Ordered:   kilowatts(f.dispatched[i]),
			Batteries: kilowatts(f.batteries[i]),
			Heat:      kilowatts(f.heat[i]),

			BatteriesLowest:  kilowatts(f.batteries[i] - f.batteriesLess[i]),
			BatteriesHighest: kilowatts(f.batteries[i] + f.batteriesMore[i]),
		}
	}

	return out
}
