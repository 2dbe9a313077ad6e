package portal

import (
	"fmt"
	"html/template"
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
		return s.again(r, flex.Fail(flex.Malformed, "no such car or charger is at this home"))
	}

	if r.PostFormValue("act") == "skip" {
		return s.skip(r, asset)
	}

	w, said, err := readWish(r)
	if err == nil {
		err = s.Control.Wish(r.Context(), r.visit.OrgID, r.visit.SiteID, asset, w)
	}

	if flex.KindOf(err) == flex.NotFound {
		err = flex.Fail(flex.Invalid, "no such car or charger is at this home any more")
	}

	if err != nil {
		return s.again(r, err)
	}

	return s.back(r, said)
}

// skip has a car charge nothing until the deadline of its plan.
func (s *Server) skip(r *request, asset flex.AssetID) error {
	err := s.Control.SkipNight(r.Context(), r.visit.OrgID, r.visit.SiteID, asset)
	if flex.KindOf(err) == flex.NotFound {
		err = flex.Fail(flex.Invalid, "there is no plan to skip: no car is plugged in")
	}

	if err != nil {
		return s.again(r, err)
	}

	return s.back(r, "skipped")
}

// away takes from when to when nobody needs a car, or that somebody is back.
func (s *Server) away(r *request) error {
	if r.PostFormValue("act") == "back" {
		if err := s.Control.SetAway(r.Context(), r.visit.OrgID, r.visit.SiteID, flex.Span{}); err != nil {
			return s.again(r, err)
		}
		return s.back(r, "home")
	}

	leaves, err := flex.ParseDay(r.PostFormValue("from"))
	back, wrong := flex.ParseDay(r.PostFormValue("back"))
	if err != nil || wrong != nil {
		return s.again(r, flex.Fail(flex.Malformed, "give both days, as in 2026-01-31"))
	}

	span := flex.Span{From: leaves.Start(), To: back.Start()}
	if err := s.Control.SetAway(r.Context(), r.visit.OrgID, r.visit.SiteID, span); err != nil {
		return s.again(r, err)
	}

	return s.back(r, "away")
}

// awayForm is what the form of an absence shows: what was written, or from today on.
func awayForm(r *request, now time.Time) map[string]string {
	if r.PostFormValue("from") != "" || r.PostFormValue("back") != "" {
		return map[string]string{"From": r.PostFormValue("from"), "Back": r.PostFormValue("back")}
	}
	return map[string]string{"From": flex.DayAt(now).String(), "Back": ""}
}

// awayText says until when nothing is needed of a car, if it is so already or will be.
func awayText(c control.HouseholdCar, now time.Time) string {
	if c.Away.IsZero() {
		return ""
	}

	until := c.Away.In(c.Zone).Format("15:04 on Monday, 2 January")
	if c.Leaves.After(now) {
		return "From " + c.Leaves.In(c.Zone).Format("Monday, 2 January") + " until " + until + " nothing is asked for."
	}

	return "Nothing is asked for until " + until + "."
}

// readWish reads the form of a wish, and says what to tell the visitor afterwards.
func readWish(r *request) (w control.Wish, said string, err error) {
	switch r.PostFormValue("act") {
	case "now":
		hours, err := strconv.Atoi(r.PostFormValue("hours"))
		if err != nil || hours < 1 {
			return w, "", flex.Fail(flex.Malformed, "say for how many hours, as in 2")
		}

		return control.Wish{ChargeFor: time.Duration(hours) * time.Hour}, "now", nil

	case "stop":
		return control.Wish{Stop: true}, "stopped", nil

	}

	if text := r.PostFormValue("ready_by"); text != "" {
		at, err := flex.ParseWallTime(text)
		if err != nil {
			return w, "", flex.Fail(flex.Malformed, "write the time as in 07:30")
		}

		w.ReadyBy = &at
	}

	if text := strings.TrimSpace(r.PostFormValue("kwh")); text != "" {
		need, err := strconv.ParseFloat(text, 64)
		within := need >= 0 && need <= control.WishNeedMax.KWh() // NaN is not
		if err != nil || !within {
			return w, "", flex.Fail(flex.Malformed, "write the amount in kWh, from 0 to %g, as in 12.5", control.WishNeedMax.KWh())
		}

		w.Need = new(flex.WattHours(need*1000 + 0.5))
	}

	return w, "wished", nil
}

// planText says in a sentence or two what a car does.
func planText(c control.HouseholdCar) string {
	if !c.PluggedIn {
		return "No car is plugged in."
	}

	if !c.Planned {
		return "A car is plugged in. There is no plan for it: it is not controlled."
	}

	by := c.ReadyBy.In(c.Zone).Format("15:04 on Monday")
	var b strings.Builder

	switch {
	case len(c.Charging) == 0 && c.Need == 0:
		b.WriteString("Nothing is asked for, so it does not charge.")
	case len(c.Charging) == 0:
		fmt.Fprintf(&b, "The %s kWh that were asked for by %s are there: it does not charge any more.", short(c.Need), by)
	default:
		fmt.Fprintf(&b, "It charges %s, and has the %s kWh by %s.", spansText(c), short(c.Need), by)
	}

	if c.Shortfall > 0 {
		b.Reset()
		fmt.Fprintf(&b, "It charges %s. That is not enough: of the %s kWh by %s, %s will be missing.", spansText(c), short(c.Need), by, short(c.Shortfall))
	}

	return b.String()
}

// spansText says when a car charges, as "23:30 to 02:10 and 04:00 to 05:00".
func spansText(c control.HouseholdCar) string {
	texts := make([]string, 0, len(c.Charging))
	for _, s := range c.Charging {
		texts = append(texts, s.From.In(c.Zone).Format("15:04")+" to "+s.To.In(c.Zone).Format("15:04"))
	}

	if len(texts) < 2 {
		return strings.Join(texts, "")
	}

	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// savedText compares the plan with charging at once, at market prices; it says nothing where
// a price was not known, or nothing is to be charged.
func savedText(c control.HouseholdCar) string {
	if !c.Priced || c.Energy == 0 {
		return ""
	}

	less := c.AtOnce.Pence() - c.Cost.Pence()
	if less <= 0 {
		return fmt.Sprintf("At market prices that costs %s.", c.Cost.Pence())
	}

	return fmt.Sprintf("At market prices that costs %s. Charged at once it would have cost %s: %s more.", c.Cost.Pence(), c.AtOnce.Pence(), less)
}

// nameText is what an asset is to those who live with it; its name with the app tells several
// apart.
func nameText(a flex.Asset) string {
	kinds := map[flex.AssetType]string{flex.Charger: "Your charger", flex.ElectricVehicle: "Your car", flex.Battery: "Your battery"}
	if a.ExternalID == "" {
		return kinds[a.Type]
	}
	return kinds[a.Type] + ", " + a.ExternalID
}

func short(e flex.WattHours) string { return strconv.FormatFloat(e.KWh(), 'f', 1, 64) }

// modeText says a battery's step in words.
func modeText(m control.ModeSpan) string {
	does := map[battery.Mode]string{
		battery.ModeCharge: "charges", battery.ModeDischarge: "gives out all that it can", battery.ModeLock: "waits",
		battery.ModeFeedIn: "covers the home", battery.ModeSelfUse: "covers the home and stores what the sun gives",
	}[m.Mode]
	return m.From.In(flex.London).Format("15:04") + " to " + m.To.In(flex.London).Format("15:04") + " it " + does
}

// The picture's measures, in pixels of its own coordinates.
const (
	planWidth  = 560
	planHeight = 120
	planFoot   = 18
)

// priceChart draws the prices of a car's plan over time, those at which it charges filled. The
// sentence above it says when.
func priceChart(c control.HouseholdCar) template.HTML {
	if !c.Priced || len(c.Periods) < 2 {
		return ""
	}

	pic := pictureOf(c)
	if pic.high == pic.low {
		return ""
	}

	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart plan" viewBox="0 0 %d %d" role="img" aria-label="Prices from %s to %s; the car charges %s">`,
		planWidth, planHeight+planFoot, clockIn(pic.from, c.Zone), clockIn(pic.to, c.Zone), spansText(c))

	for _, p := range c.Periods {
		b.WriteString(pic.bar(p))
	}

	for at := pic.from.Truncate(time.Hour).Add(time.Hour); at.Before(pic.to); at = at.Add(time.Hour) {
		if at.In(c.Zone).Hour()%3 == 0 {
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`, pic.x(at), planHeight+planFoot-4, clockIn(at, c.Zone))
		}
	}

	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // numbers and our own words alone
}

// picture is where instants and prices are on the picture.
type picture struct {
	from, to  time.Time
	low, high flex.Price // zero is between them
}

func pictureOf(c control.HouseholdCar) picture {
	pic := picture{from: c.Periods[0].From, to: c.Periods[len(c.Periods)-1].To}
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

// bar is a period's price as a bar from zero, upwards or downwards.
func (pic picture) bar(p charge.Period) string {
	left, right := pic.x(p.From), pic.x(p.To)
	top, bottom := pic.y(max(p.Price, 0)), pic.y(min(p.Price, 0))
	return fmt.Sprintf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, classOf(p), left, top, max(right-left-1, 1), max(bottom-top, 1))
}

func classOf(p charge.Period) string {
	if p.Energy > 0 {
		return "metered"
	}
	return "usual"
}

func clockIn(t time.Time, zone *time.Location) string { return t.In(zone).Format("15:04") }
