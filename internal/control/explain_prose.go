package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

func kwh(e flex.WattHours) string {
	return strconv.FormatFloat(e.KWh(), 'f', -1, 64)
}

// energyText describes the energy of the schedule, or why it falls short.
func (x *Explanation) energyText() string {
	p := &x.Plan
	if p.Shortfall <= 0 {
		return fmt.Sprintf("The schedule allows %s kWh. ", kwh(p.Energy))
	}

	if len(x.shortReasons) == 1 && x.shortReasons[0].Cause == ShortOffPeak {
		return fmt.Sprintf(
			"Off-peak hours alone do not suffice: %s kWh will be missing. ",
			kwh(p.Shortfall),
		)
	}

	if len(x.Caps) == 0 {
		return fmt.Sprintf(
			"The time does not suffice: %s kWh will be missing. ",
			kwh(p.Shortfall),
		)
	}

	s := fmt.Sprintf(
		"There is not room enough under %s: %s kWh will be missing. ",
		capName(x.Caps[0]),
		kwh(p.Shortfall),
	)

	if x.fuseGain > 0 {
		s += fmt.Sprintf(
			"One kW more of main fuse would bring %s kWh of it. ",
			kwh(x.fuseGain),
		)
	}

	return s
}

// summary describes a schedule in a few sentences.
func summary(x *Explanation) string {
	e, zone := x.From, zoneOf(x.From.Tariff)
	var b strings.Builder
	if originsOf(e.Origins).intent == fromHousehold {
		b.WriteString(
			"Nobody is at home, or tonight is skipped: nothing is asked for before that is over. ",
		)
	}

	fmt.Fprintf(
		&b,
		"%s kWh are needed by %s",
		kwh(max(0, e.Need-e.Delivered)),
		onDay(e.ReadyBy, zone),
	)

	if e.Delivered > 0 {
		fmt.Fprintf(&b, ", after %s kWh that were charged", kwh(e.Delivered))
	}

	b.WriteString(x.rechargeText() + ". ")

	if !e.ChargeNow.Empty() {
		fmt.Fprintf(
			&b,
			"Charging now was asked for, until %s. ",
			onDay(e.ChargeNow.To, zone),
		)
	}

	offPeak := "All hours are off-peak"
	if e.Tariff.OffPeak != "" {
		offPeak = "Off-peak hours are " + e.Tariff.OffPeak
	}

	if fmt.Fprintf(&b, "%s; ", offPeak); e.Mode == flex.Minimise {
		b.WriteString("charging stops when the need " + x.dischargeText() + "is met. ")
	} else {
		b.WriteString("the car may charge in all of them, and gets at least what it needs. ")
	}

	b.WriteString(x.energyText())
	b.WriteString(spreadSentence(e.Ramp))

	if x.Plan.HasThreshold && !x.Curve.IsZero() {
		fmt.Fprintf(
			&b,
			"Electricity at up to %s/MWh is bought. ",
			x.Plan.Threshold.Pounds(),
		)
	}

	for _, line := range x.CapLines() {
		b.WriteString(line + " ")
	}

	for _, line := range x.dischargeLines() {
		b.WriteString(line + " ")
	}

	return strings.TrimSpace(b.String())
}

// onDay formats a time of day with its day, for the middle of a sentence.
func onDay(at time.Time, zone *time.Location) string {
	return flex.Clock(at, zone, "15:04 on Monday")
}

// CapLines describes which caps limited the schedule, when, and the value of more headroom.
func (x *Explanation) CapLines() []string {
	zone := zoneOf(x.From.Tariff)

	var lines []string
	for _, c := range x.Caps {
		line := fmt.Sprintf(
			"From %s to %s it is held back by %s",
			flex.Clock(c.From, zone, "Mon 15:04"),
			flex.Clock(c.To, zone, "Mon 15:04"),
			capName(c),
		)

		if c.Price > 0 {
			line += fmt.Sprintf(
				", where room is worth %s/MWh",
				c.Price.Pounds(),
			)
		}
		lines = append(lines, line+".")
	}

	if line := x.minPowerLine(); line != "" {
		lines = append(lines, line)
	}

	if planRefused(&x.From) {
		lines = append(
			lines,
			"The plan of its site would have passed the main fuse and was not sent: this is what the fuse leaves of it.",
		)
	}

	if plannedAsOne(&x.From) {
		return append(lines, lackOf(x.From.Origins).sentences()...)
	}

	if len(x.Caps) == 0 && len(x.Limits) > 0 {
		lines = append(
			lines,
			"It gives way to others under the same caps, or is held to what was traded, at no loss.",
		)
	}

	return lines
}

// minPowerLine says that an asset waits where there is less headroom than it can charge with.
// It is empty for a single-phase asset, as no charger has less than its minimum power.
func (x *Explanation) minPowerLine() string {
	least := flex.LeastPower(x.From.Phases)
	closed := slices.ContainsFunc(x.Limits, func(s flex.Step) bool {
		return s.Limit == 0
	})
	if x.From.Phases < 2 || len(x.Caps) == 0 || !closed {
		return ""
	}

	return fmt.Sprintf(
		"On %d phases it takes %s kW at least, 6 A on each: where less is left it waits, as it would not charge.",
		x.From.Phases,
		kw(least),
	)
}

// capName names a cap in a sentence.
func capName(c BindingCap) string {
	whose := "the fleet"
	if c.Group != "" {
		whose = "group " + c.Group
	}

	if c.Site {
		fuse := fmt.Sprintf("the main fuse, %s kW", kw(c.Power))
		if c.Phase {
			fuse += " of its power on the phases that it is on"
		}
		if c.Home > 0 {
			fuse += fmt.Sprintf(
				", of which %s kW are kept for the home's own load",
				kw(c.Home),
			)
		}
		return fuse
	}

	if c.Starts {
		return "the starts per minute of " + whose
	}

	return fmt.Sprintf(
		capText[c.Limit],
		whose,
		strconv.FormatFloat(c.Power.KW(), 'f', -1, 64),
	)
}

// capText describes a cap by the source of a feeder's limit; empty for a cap that was set in
// flexd.
var capText = map[string]string{
	"":         "the cap of %s, %s kW",
	"import":   "the network operator's limit of the feeder of %s, %s kW",
	"openadr":  "the network operator's limit of the feeder of %s, %s kW, by an OpenADR event",
	"fallback": "the fallback of the feeder of %s, %s kW, as nothing is heard on its link",
}

// Prose returns the explanation as text: the summary, then each sequence of periods with the
// same reason, then the inputs.
func (x *Explanation) Prose() string {
	zone := zoneOf(x.From.Tariff)
	clock := func(t time.Time) string {
		return flex.Clock(t, zone, "Mon 15:04:05")
	}

	var b strings.Builder
	fmt.Fprintf(
		&b,
		"Schedule %d of asset %v, made %s because of: %s\n\n%s\n\n",
		x.Generation,
		x.AssetID,
		clock(x.MadeAt),
		x.Cause,
		x.Summary,
	)

	for at := 0; at < len(x.Plan.Periods); {
		run := x.runAt(at)
		fmt.Fprintln(&b, proseOf(run, clock))
		at += len(run)
	}

	for i := range x.Heat {
		p := &x.Heat[i]
		fmt.Fprintf(
			&b,
			"%s to %s  %.2f kWh, then %.1f °C: %s\n",
			clock(p.From),
			clock(p.Span.To),
			p.Energy/1000,
			p.Temp,
			p.Reason,
		)
	}

	b.WriteByte('\n')

	for _, in := range x.Inputs {
		fmt.Fprintf(&b, "%s = %s (%s)\n", in.Name, in.Value, in.Source())
	}

	b.WriteString("\n" + x.acceptedText() + "\n")

	if !x.Exact {
		b.WriteString(
			"This explanation was worked out again and differs from the schedule, which was made by another version of flexd or whose prices are past their keeping.\n",
		)
	}

	return b.String()
}

// runAt returns the periods from one on that have the same reason and are equally off-peak or
// peak.
func (x *Explanation) runAt(at int) []charge.Period {
	first := x.Plan.Periods[at]
	to := at
	for to < len(x.Plan.Periods) && x.Plan.Periods[to].Reason == first.Reason && x.Plan.Periods[to].OffPeak == first.OffPeak {
		to++
	}

	return x.Plan.Periods[at:to]
}

// proseOf returns a line for periods with the same reason.
func proseOf(run []charge.Period, clock func(time.Time) string) string {
	first, last := run[0], run[len(run)-1]
	low, high := first.Price, first.Price
	energy := flex.WattHours(0)
	known := false

	for _, p := range run {
		energy += p.Energy
		low, high = min(low, p.Price), max(high, p.Price)
		known = known || p.Known
	}

	kind := "peak"
	if first.OffPeak {
		kind = "off-peak"
	}

	price := "no price known"
	if known && low == high {
		price = low.Pounds() + "/MWh"
	} else if known {
		price = fmt.Sprintf("%s to %s/MWh", low.Pounds(), high.Pounds())
	}

	return fmt.Sprintf(
		"%s to %s  %8s kWh  %-8s  %s: %s",
		clock(first.From),
		clock(last.To),
		kwh(energy),
		kind,
		price,
		first.Reason,
	)
}

// lastReport returns the client's last report about a schedule; empty for none.
func lastReport(
	ctx context.Context,
	tx *store.Tx,
	event flex.EventID,
) (flex.CallbackStatus, error) {
	reports, err := tx.Callbacks(ctx, event)
	if err != nil || len(reports) == 0 {
		return "", err
	}

	return reports[len(reports)-1].Status, nil
}

// acceptedText describes what the client has accepted, and whether it then reported that it
// does not follow it.
func (x *Explanation) acceptedText() string {
	if x.Accepted >= x.Generation {
		if x.Reported == flex.Rejected || x.Reported == flex.Failed {
			return fmt.Sprintf(
				"The client has accepted this schedule, but reported it as %s: it is not followed.",
				x.Reported,
			)
		}

		return "The client has accepted this schedule."
	}

	if x.Accepted > 0 {
		return fmt.Sprintf(
			"The client has last accepted schedule %d.",
			x.Accepted,
		)
	}

	return "The client has accepted no schedule yet."
}
