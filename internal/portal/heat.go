package portal

import (
	"math"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// heatingShown is how many of the times at which a heater heats are named.
const heatingShown = 4

// heatsText says in a sentence when a hot-water tank or a heat pump heats.
func (l *speech) heatsText(h control.HouseholdHeat) string {
	if !h.Planned {
		return l.say("There is no plan for it: it heats as it is set.")
	}

	if len(h.Heating) == 0 {
		return l.say("It need not heat until {1}.", l.heatUntil(h))
	}

	shown := h.Heating[:heatsNamed(h.Heating)]
	times := l.spansText(shown, flex.London)
	if len(h.Heating) > len(shown) {
		return l.say("It heats {1}, and again later.", times)
	}

	return l.say("It heats {1}.", times)
}

// heatsNamed is how many times of heating are named: a few, and none of a day later, whose clock the first ones have too.
func heatsNamed(spans []flex.Span) int {
	named := 0
	for _, s := range spans[:min(len(spans), heatingShown)] {
		if s.From.Sub(spans[0].From) < 20*time.Hour {
			named++
		}
	}

	return named
}

// warmText says how warm the water or the rooms will be by the plan, and when that is too little.
func (l *speech) warmText(h control.HouseholdHeat) string {
	if !h.Planned || h.Warmest <= h.Coldest {
		return ""
	}

	until := l.heatUntil(h)
	text := l.say(
		"Your water is then expected to be between {1} and {2} °C, until {3}.",
		math.Round(h.Coldest),
		math.Round(h.Warmest),
		until,
	)
	if h.Asset.Type == flex.HeatPump {
		text = l.say(
			"Your rooms are then expected to be between {1} and {2} °C, until {3}.",
			math.Round(2*h.Coldest)/2,
			math.Round(2*h.Warmest)/2,
			until,
		)
	}

	if h.LackAt.IsZero() {
		return text
	}

	return text + " " + l.say(
		"About {1} that is less than you asked for: it cannot heat more.",
		clockIn(h.LackAt, flex.London),
	)
}

func (l *speech) heatUntil(h control.HouseholdHeat) string {
	return l.when(h.Until, flex.London, "15:04 on Monday")
}

// givesText says when a car gives electricity back.
func (l *speech) givesText(c control.HouseholdCar, now time.Time) string {
	ahead := spansAfter(c.Discharging, now)
	if planOver(c, now) || len(ahead) == 0 {
		return ""
	}

	return l.say(
		"It gives electricity back {1}. It keeps at least {2} % of its battery, and is charged again what it gave.",
		l.spansText(ahead, c.Zone),
		c.Reserve,
	)
}

// fullText says how full a car's battery will be, where that is known.
func (l *speech) fullText(c control.HouseholdCar, now time.Time) string {
	if !c.Planned || planOver(c, now) || c.ReadyLevel == 0 {
		return ""
	}

	return l.say(
		"Its battery is expected to be {1} % full by {2}.",
		c.ReadyLevel,
		l.when(c.ReadyBy, c.Zone, "15:04 on Monday"),
	)
}
