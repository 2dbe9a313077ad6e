package portal

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// wish takes what a visitor asks of a car: charge now, stop that, another time, another amount.
func (s *Server) wish(r *request) error {
	var asset flex.AssetID
	if err := asset.UnmarshalText([]byte(r.PostFormValue("asset"))); err != nil {
		return s.again(
			r,
			wrong(r.speech.say("no such car or charger is at this home")),
		)
	}

	switch r.PostFormValue("act") {
	case "skip":
		return s.skip(r, asset)
	case "back":
		return s.endAway(r, asset)
	}

	w, said, err := readWish(r)
	if err == nil {
		err = s.Control.Wish(
			r.Context(),
			r.visit.OrgID,
			r.visit.SiteID,
			asset,
			w,
		)
	}

	if flex.KindOf(err) == flex.NotFound {
		err = wrong(r.speech.say("no such car or charger is at this home any more"))
	}

	if err != nil {
		return s.again(r, err)
	}

	return s.back(r, said)
}

// readWish reads the form of a wish, and says what to tell the visitor afterwards.
func readWish(r *request) (control.Wish, string, error) {
	var w control.Wish
	switch r.PostFormValue("act") {
	case "now":
		hours, err := strconv.Atoi(r.PostFormValue("hours"))
		if err != nil || hours < 1 {
			return w, "", wrong(r.speech.say("say for how many hours, as in 2"))
		}

		return control.Wish{
			ChargeFor: time.Duration(hours) * time.Hour,
		}, "now", nil

	case "stop":
		return control.Wish{Stop: true}, "stopped", nil

	}

	readyBy, kwh := changedWish(r)
	if text := readyBy; text != "" {
		at, err := flex.ParseWallTime(text)
		if err != nil {
			return w, "", wrong(r.speech.say("write the time as in 07:30"))
		}

		w.ReadyBy = &at
	}

	if text := kwh; text != "" {
		if r.speech.comma {
			text = strings.Replace(text, ",", ".", 1)
		}

		need, err := strconv.ParseFloat(text, 64)
		within := need >= 0 && need <= control.WishNeedMax.KWh() // NaN is not
		if err != nil || !within {
			return w, "", wrong(r.speech.say(
				"write the amount in kWh, from 0 to {1}, as in 12.5",
				control.WishNeedMax.KWh(),
			))
		}

		w.Need = new(flex.WattHours(need*1000 + 0.5))
	}

	return w, "wished", nil
}

// changedWish are the time and the amount of a form, without the one that is as the page had it: it may be rounded there, of another day
// or out of date by now. A form in which both are as they were asks for both.
func changedWish(r *request) (readyBy, kwh string) {
	readyBy = r.PostFormValue("ready_by")
	kwh = strings.TrimSpace(r.PostFormValue("kwh"))
	sameTime := readyBy == r.PostFormValue("ready_by_was")
	sameNeed := kwh == r.PostFormValue("kwh_was")

	switch {
	case sameTime && sameNeed:
		return readyBy, kwh
	case sameTime:
		return "", kwh
	case sameNeed:
		return readyBy, ""
	}

	return readyBy, kwh
}

// planText says in a sentence or two what a car does, has done by its plan, or will do.
func (l *speech) planText(c control.HouseholdCar, now time.Time) string {
	if c.Freed && c.Excluded {
		return l.say("A car is plugged in, but the operator has excluded it from control: it charges on its own. It is planned again once the operator includes it, at the latest when you plug the car in again after that.")
	}

	if c.Freed && c.Controlled {
		return l.say("A car is plugged in, but its charging is not planned at present: it charges on its own. It is planned again when you next plug the car in, at the latest.")
	}

	if c.Freed {
		return l.say("A car is plugged in, but its charging is no longer planned: it charges on its own. It is planned again once you have agreed to that, at the latest when you next plug the car in.")
	}

	if !c.PluggedIn {
		return l.say("No car is plugged in.")
	}

	if !c.Planned {
		return l.say("A car is plugged in. There is no plan for it: it is not controlled.")
	}

	if planOver(c, now) {
		return l.overText(c)
	}

	by := l.when(c.ReadyBy, c.Zone, "15:04 on Monday")

	ahead := spansAfter(c.Charging, now)

	switch {
	case c.Shortfall > 0:
		return l.shortText(c, ahead, by)

	case c.Need == 0 && len(ahead) > 0: // as after a night is skipped, while it charges at once
		return l.say("It charges {1}.", l.spansText(ahead, c.Zone))

	case len(ahead) > 0:
		return l.say(
			"It charges {1}, and has the {2} kWh by {3}.",
			l.spansText(ahead, c.Zone),
			c.Need,
			by,
		)

	case len(c.Charging) > 0: // what it did is in the history
		return l.say(
			"It was planned to charge {1}, and to have the {2} kWh by {3}. Nothing more is planned until then.",
			l.spansText(c.Charging, c.Zone),
			c.Need,
			by,
		)

	case c.Need == 0:
		return l.say("Nothing is asked for, so it does not charge.")

	}

	return l.say(
		"The {1} kWh that were asked for by {2} are there: it does not charge any more.",
		c.Need,
		by,
	)
}

// shortText says that what is planned is not enough.
func (l *speech) shortText(
	c control.HouseholdCar,
	ahead []flex.Span,
	by string,
) string {
	if len(ahead) == 0 {
		return l.say(
			"It does not charge any more: of the {1} kWh by {2}, {3} will be missing.",
			c.Need,
			by,
			c.Shortfall,
		)
	}

	return l.say(
		"It charges {1}. That is not enough: of the {2} kWh by {3}, {4} will be missing.",
		l.spansText(ahead, c.Zone),
		c.Need,
		by,
		c.Shortfall,
	)
}

// whyText says why a car charges when it does; it says nothing where that is not known.
func (l *speech) whyText(c control.HouseholdCar, now time.Time) string {
	idle := len(spansAfter(c.Charging, now)) == 0
	switch {
	case planOver(c, now), idle && c.Shortfall == 0:
		return ""

	case !c.ChargeNow.IsZero(): // the page says so beside the button that ends it
		return ""

	case c.ConstrainedBy == control.ConstrainedBySite:
		return l.say("At times the main fuse of your home leaves it less than it could use.")

	case c.ConstrainedBy == control.ConstrainedByGrid:
		return l.say("At times the electricity network leaves it less than it could use.")

	case c.Shortfall > 0 && c.OffPeak:
		return l.say("Only the cheap hours of your tariff may be used.")

	case c.Shortfall > 0:
		return l.say("The time is too short for more.")

	case unpriced(c):
		return l.say("No prices are known for that time yet. It is planned again when they are.")

	case !c.ByMarket, !c.Priced || c.AtOnce <= c.Cost:
		return ""

	case c.OffPeak:
		return l.say("These are the times at which electricity costs the market least, within the cheap hours of your tariff.")

	}

	return l.say("These are the times at which electricity costs the market least until then.")
}

// unpriced reports whether no price was known for the time of a car's plan.
func unpriced(c control.HouseholdCar) bool {
	return !slices.ContainsFunc(c.Periods, func(p charge.Period) bool { return p.Known })
}

// spansAfter are the spans that are not over yet.
func spansAfter(spans []flex.Span, now time.Time) []flex.Span {
	for i, s := range spans {
		if s.To.After(now) {
			return spans[i:]
		}
	}

	return nil
}

// planOver reports whether the time by which a car was to be ready is past, and nothing else is asked of it.
func planOver(c control.HouseholdCar, now time.Time) bool {
	return !now.Before(c.ReadyBy) && !c.ChargeNow.After(now)
}

// overText says what a plan was that has ended, while the car is still plugged in.
func (l *speech) overText(c control.HouseholdCar) string {
	by := l.when(c.ReadyBy, c.Zone, "15:04 on Monday")
	text := l.say("Nothing was to be charged by {1}.", by)

	if len(c.Charging) > 0 {
		text = l.say(
			"It was planned to charge {1}, for the {2} kWh by {3}.",
			l.spansText(c.Charging, c.Zone),
			c.Need,
			by,
		)
	}

	if c.Shortfall > 0 {
		text += " " + l.say("Of them {1} kWh were out of reach.", c.Shortfall)
	}

	return text + " " +
		l.say("That plan is over: what the car charges from now on is not planned.") + " " +
		l.say("The next plan is made when the car is plugged in again, or when you ask for something here.")
}

// spansText says when a car charges, as "23:30 to 02:10 and 04:00 to 05:00".
func (l *speech) spansText(spans []flex.Span, zone *time.Location) string {
	texts := make([]string, 0, len(spans))
	for _, s := range spans {
		texts = append(
			texts,
			l.say("{1} to {2}", clockIn(s.From, zone), clockIn(s.To, zone)),
		)
	}

	if len(texts) < 2 {
		return strings.Join(texts, "")
	}

	last := len(texts) - 1

	return l.say("{1} and {2}", strings.Join(texts[:last], ", "), texts[last])
}

// savedText compares the plan with charging at once, at market prices; it says nothing where
// a price was not known, or nothing is to be charged.
func (l *speech) savedText(c control.HouseholdCar, now time.Time) string {
	if !c.Priced || c.Energy == 0 {
		return ""
	}

	if c.Cost.Pence() < 0 {
		text := l.say("At market prices that brings {1}.", -c.Cost.Pence())
		if planOver(c, now) {
			text = l.say("At market prices the plan brought {1}.", -c.Cost.Pence())
		}

		return text + l.besideText(c.Cost, c.AtOnce)
	}

	less := c.AtOnce.Pence() - c.Cost.Pence()
	if planOver(c, now) && less > 0 {
		return l.say(
			"At market prices the plan cost {1}, and charging at once would have cost {2}: {3} more.",
			c.Cost.Pence(),
			c.AtOnce.Pence(),
			less,
		)
	}

	if planOver(c, now) {
		return l.say("At market prices the plan cost {1}.", c.Cost.Pence())
	}

	if less <= 0 {
		return l.say("At market prices that costs {1}.", c.Cost.Pence())
	}

	return l.say(
		"At market prices that costs {1}. Charged at once it would have cost {2}: {3} more.",
		c.Cost.Pence(),
		c.AtOnce.Pence(),
		less,
	)
}

// besideText says, after a space, what charging at once would have cost or brought; empty if that is no worse.
func (l *speech) besideText(cost, instead flex.MicroPounds) string {
	atOnce := instead.Pence()
	if atOnce <= cost.Pence() {
		return ""
	}
	if atOnce < 0 {
		return " " + l.say("Charged at once it would have brought {1}.", -atOnce)
	}

	return " " + l.say("Charged at once it would have cost {1}.", atOnce)
}

// carbonText compares the carbon dioxide of the plan with that of charging at once; it says nothing where
// that is not known, or nothing is to be charged.
func (l *speech) carbonText(c control.HouseholdCar) string {
	if !c.CarbonKnown || c.Energy == 0 {
		return ""
	}

	less := c.CarbonAtOnce - c.Carbon
	if less > -50 && less < 50 { // grams, which would be shown as nothing
		return l.say("It carries {1} kg of CO₂.", l.kilograms(c.Carbon))
	}

	if less > 0 {
		return l.say(
			"It carries {1} kg of CO₂, {2} kg less than at once.",
			l.kilograms(c.Carbon),
			l.kilograms(less),
		)
	}

	return l.say(
		"It carries {1} kg of CO₂, {2} kg more than at once.",
		l.kilograms(c.Carbon),
		l.kilograms(-less),
	)
}

func (l *speech) kilograms(grams float64) string {
	return l.decimal(strconv.FormatFloat(grams/1000, 'f', 1, 64))
}

// assetNames are what assets are to those who live with them.
var assetNames = map[flex.AssetType]string{
	flex.Charger:         "Your charger",
	flex.ElectricVehicle: "Your car",
	flex.Battery:         "Your battery",
	flex.HotWaterTank:    "Your hot water",
	flex.HeatPump:        "Your heating",
}

// nameText is what an asset is to those who live with it; its name with the app tells several
// apart.
func (l *speech) nameText(a flex.Asset) string {
	name := l.say(assetNames[a.Type])
	if a.ExternalID == "" {
		return name
	}

	return name + ", " + a.ExternalID
}

func short(e flex.WattHours) string {
	return strconv.FormatFloat(e.KWh(), 'f', 1, 64)
}

// modes are what a battery does in a time.
var modes = map[battery.Mode]string{
	battery.ModeCharge:    "{1} it charges",
	battery.ModeDischarge: "{1} it gives out all that it can",
	battery.ModeLock:      "{1} it neither charges nor discharges",
	battery.ModeFeedIn:    "{1} it covers the home",
	battery.ModeSelfUse:   "{1} it covers the home, and stores any surplus",
}

// modeText says a battery's step in words, with its day.
func (l *speech) modeText(m control.BatteryStretch) string {
	return l.say(modes[m.Mode], l.span(m.Span))
}

// The picture's measures, in pixels of its own coordinates.
const (
	planWidth  = 560
	planHeight = 120
	planFoot   = 18
)

// priceChart draws the prices of a car's plan over time, those at which it charges filled. The
// sentence above it says when. There is none where nothing is to be charged.
func (l *speech) priceChart(c control.HouseholdCar) template.HTML {
	if !c.Priced || len(c.Periods) < 2 || c.Energy == 0 {
		return ""
	}

	pic := pictureOf(c)
	if pic.high == pic.low {
		return ""
	}

	var b strings.Builder
	fmt.Fprintf(
		&b,
		`<svg class="chart plan" viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		planWidth,
		planHeight+planFoot,
		l.say(
			"Prices from {1} to {2}; the car charges {3}",
			clockIn(pic.from, c.Zone),
			clockIn(pic.to, c.Zone),
			l.spansText(c.Charging, c.Zone),
		),
	)

	for _, p := range c.Periods {
		b.WriteString(pic.bar(p))
	}

	for _, at := range pic.marks(c.Zone) {
		fmt.Fprintf(
			&b,
			`<text x="%.1f" y="%d">%s</text>`,
			pic.x(at),
			planHeight+planFoot-4,
			pic.mark(l, at, c.Zone),
		)
	}

	fmt.Fprintf(
		&b,
		`</svg><p class="key"><i class="metered"></i>%s <i class="usual"></i>%s</p>`,
		l.say("it charges"),
		l.say("it does not; each bar is the market price of half an hour"),
	)

	return template.HTML(b.String()) // numbers and our own words alone
}

// picture is where instants and prices are on the picture.
type picture struct {
	from      time.Time
	to        time.Time
	low, high flex.Price // zero is between them
}

func pictureOf(c control.HouseholdCar) picture {
	pic := picture{
		from: c.Periods[0].From,
		to:   c.Periods[len(c.Periods)-1].To,
	}

	for _, p := range c.Periods {
		pic.low = min(pic.low, p.Price)
		pic.high = max(pic.high, p.Price)
	}

	return pic
}

func (pic picture) x(t time.Time) float64 {
	return planWidth * float64(t.Sub(pic.from)) / float64(pic.to.Sub(pic.from))
}

func (pic picture) y(p flex.Price) float64 {
	return planHeight * float64(pic.high-p) / float64(pic.high-pic.low)
}

// markWidth is the room that an instant takes under the picture.
const markWidth = 70

// markHours are the distances of the instants under a picture, the least that leaves each its room.
var markHours = []int{1, 3, 6, 12, 24, 48, 96, 192}

// marks are the instants that stand under the picture, by the clocks of a zone.
func (pic picture) marks(zone *time.Location) []time.Time {
	hours := pic.to.Sub(pic.from).Hours()
	every := markHours[len(markHours)-1]
	for _, h := range slices.Backward(markHours) {
		if hours/float64(h)*markWidth <= planWidth {
			every = h
		}
	}

	var marks []time.Time
	last := pic.to.Add(-time.Duration(hours * markWidth / planWidth * float64(time.Hour)))
	for at := pic.from.Truncate(time.Hour).Add(time.Hour); !at.After(last); at = at.Add(time.Hour) {
		local := at.In(zone)
		if (local.Hour()+24*local.YearDay())%every == 0 {
			marks = append(marks, at)
		}
	}

	return marks
}

// mark is an instant under the picture: the day, where whole days lie between them.
func (pic picture) mark(l *speech, at time.Time, zone *time.Location) string {
	const longest = 4 * 24 * time.Hour
	if pic.to.Sub(pic.from) > longest {
		return l.when(at, zone, "2 Jan")
	}

	return clockIn(at, zone)
}

// bar is a period's price as a bar from zero, upwards or downwards.
func (pic picture) bar(p charge.Period) string {
	left, right := pic.x(p.From), pic.x(p.To)
	top, bottom := pic.y(max(p.Price, 0)), pic.y(min(p.Price, 0))
	return fmt.Sprintf(
		`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
		classOf(p),
		left,
		top,
		max(right-left-1, 1),
		max(bottom-top, 1),
	)
}

func classOf(p charge.Period) string {
	if p.Energy > 0 {
		return "metered"
	}
	return "usual"
}

func clockIn(t time.Time, zone *time.Location) string {
	return flex.Clock(t, zone, "15:04")
}
