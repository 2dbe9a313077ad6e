package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/client"
)

// gridEvening and gridMorning bound the night in which the grid's side asks.
var (
	gridEvening = autumnDay.Start().Add(18 * time.Hour)
	gridMorning = gridEvening.Add(13 * time.Hour)
)

func broke(o Outcome, law string) bool {
	return slices.ContainsFunc(o.Broken, func(b string) bool { return strings.HasPrefix(b, law+":") })
}

// Cars that are asked to draw less for an hour and a half do so, and have what they need; two that answer and
// do not follow are found.
func TestRandomHomes_Instruction(t *testing.T) {
	night := gridEvening.Add(7 * time.Hour) // at two in the cheap time, when they charge
	ask := Happening{Kind: Instruct, KW: 6, From: night, To: night.Add(90 * time.Minute)}
	var history []Happening
	for i := range 3 {
		history = append(history, Happening{Kind: Stay, Home: homeName(i), KW: 3.7, Need: 12, From: gridEvening, To: gridMorning})
	}

	history = append(history, ask)
	for _, b := range play(t, history).Broken {
		t.Error(b)
	}

	history[3].Deaf = true
	if o := play(t, history); !broke(o, "target") {
		t.Errorf("chargers that do not follow were not found: %q", o.Broken)
	}
}

// A car that comes while others are asked to draw less is called, and turns out to need a part of that time: what is
// reported as expected of it is what it was sent last. So is it of one that is charged at once, or needs more.
func TestRandomHomes_CalledAgain(t *testing.T) {
	came := gridEvening.Add(80 * time.Minute)
	ask := Happening{Kind: Instruct, KW: 2, From: gridEvening.Add(30 * time.Minute), To: gridEvening.Add(150 * time.Minute)}
	stay := Happening{Kind: Stay, Home: "car0", KW: 3.7, Need: 34, From: came, To: gridMorning}
	later := came.Add(25 * time.Minute)

	for name, more := range map[string]Happening{
		"nothing": ask,
		"change":  {Kind: Change, Home: "car0", KW: 3.7, Need: 40, From: later, To: later},
		"boost":   {Kind: Boost, Home: "car0", KW: 3.7, From: later, To: later.Add(20 * time.Minute)},
	} {
		history := []Happening{stay, ask}
		if name != "nothing" {
			history = append(history, more)
		}
		for _, b := range play(t, history).Broken {
			t.Errorf("%s: %s", name, b)
		}
	}
}

// An older push that comes after a newer one is found; a car that needs something else gets them in order.
func TestRandomHomes_Order(t *testing.T) {
	history := []Happening{
		{Kind: Stay, Home: "car0", KW: 7.4, Need: 10, From: gridEvening, To: gridMorning},
		{Kind: Change, Home: "car0", KW: 7.4, Need: 25, From: gridEvening.Add(time.Hour), To: gridEvening.Add(time.Hour)},
		{Kind: Outage, From: gridEvening.Add(2 * time.Hour), To: gridEvening.Add(3 * time.Hour)},
	}
	for _, b := range play(t, history).Broken {
		t.Error(b)
	}

	history[2].Replays = true
	if o := play(t, history); !broke(o, "order") {
		t.Errorf("an older push after a newer was not found: %q", o.Broken)
	}
}

// A battery that is emptied more than three times in a day is found; one that follows its schedule is not.
func TestRandomHomes_Wear(t *testing.T) {
	history := []Happening{
		{Kind: Fuse, Home: "home", KW: 10, From: autumnDay.Start(), To: autumnDay.Start()},
		{Kind: Storage, Home: "home", KW: 3, CapacityKWh: 5, From: autumnDay.Start(), To: autumnDay.Start()},
		{Kind: Stay, Home: "home", KW: 7.4, Need: 20, From: gridEvening, To: gridMorning},
	}
	for _, b := range play(t, history).Broken {
		t.Error(b)
	}

	history[1].Churns = true
	if o := play(t, history); !broke(o, "wear") {
		t.Errorf("a battery that charges and gives by turns was not found: %q", o.Broken)
	}
}

// A car that needs more while the endpoint is out of reach can be told when it is back, and has what is possible
// from then on.
func TestRandomHomes_ChangeInOutage(t *testing.T) {
	night := gridEvening.Add(5 * time.Hour)
	change := night.Add(10 * time.Minute)
	history := []Happening{
		{Kind: Stay, Home: "car0", KW: 3.7, Need: 2, From: gridEvening, To: gridMorning},
		{Kind: Change, Home: "car0", KW: 3.7, Need: 27, From: change, To: change},
		{Kind: Outage, From: night, To: night.Add(40 * time.Minute)},
	}
	for _, b := range play(t, history).Broken {
		t.Error(b)
	}

	history[0].Dead = true
	if o := play(t, history); !broke(o, "need") {
		t.Errorf("a charger that gives nothing was not found: %q", o.Broken)
	}
}

// Money that is not energy times price, and more deviations than half-hours of cars, are found.
func TestMoneyBroken(t *testing.T) {
	right := client.InstructionSettled{NumEvents: 2, FlexKWh: -10, RevenueGBP: 1.2}
	if got := moneyBroken(gridEvening, &right, 2); len(got) > 0 {
		t.Errorf("10 kWh at £120 a MWh: %q", got)
	}

	for _, s := range []client.InstructionSettled{
		{NumEvents: 2, FlexKWh: -10, RevenueGBP: 2.4}, {NumEvents: 3, FlexKWh: -10, RevenueGBP: 1.2}, {NumEvents: 2, FlexKWh: -10, RevenueGBP: -1.2},
	} {
		if got := moneyBroken(gridEvening, &s, 2); len(got) != 1 {
			t.Errorf("%+v: %q", s, got)
		}
	}
}

// A home of which a smaller history leaves a main fuse alone is no home: a history can be shrunk to one.
func TestRandomHomes_FuseAlone(t *testing.T) {
	history := []Happening{
		{Kind: Fuse, Home: "empty", KW: 10, From: autumnDay.Start(), To: autumnDay.Start()},
		{Kind: Stay, Home: "car0", KW: 7.4, Need: 10, From: gridEvening, To: gridMorning},
	}
	for _, b := range play(t, history).Broken {
		t.Error(b)
	}
}
