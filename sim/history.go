package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Kind is what a happening is.
type Kind string

// The kinds of happenings.
const (
	Stay   Kind = "stay"   // a car at its home, from plug-in to plug-out
	Outage Kind = "outage" // the client's endpoint answers 503
	// flexd ends and is opened again on the same database
	Restart Kind = "restart"
	// flexd is killed in the midst of what it writes next
	Kill Kind = "kill"
	// a home's readings are kept back, and come at the end, twice, the newest first
	Late Kind = "late"
)

// Happening is one event of a history. It is taken out of a history whole.
type Happening struct {
	Kind Kind      `json:"kind"`
	Home string    `json:"home,omitempty"` // of a stay and of late readings
	KW   float64   `json:"kw,omitempty"`   // of the home's charger
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// by 07:00 in London on the day it leaves
	Need float64 `json:"need_kwh,omitempty"`
	// of a kill: of what was being written, from 0 to 1, that is on disk
	Share float64 `json:"share,omitempty"`

	// a planted fault: the charger gives nothing during the stay
	Dead bool `json:"dead,omitempty"`
	// a planted fault: the plug-in is counted and never sent
	Skipped bool `json:"skipped,omitempty"`
	// a planted fault: a kill takes away what was acknowledged at its instant, too
	Forgets bool `json:"forgets,omitempty"`
}

// valid reports why a happening cannot be played.
func (h Happening) valid() error {
	switch {
	case !slices.Contains([]Kind{Stay, Outage, Restart, Kill, Late}, h.Kind):
		return flex.Fail(flex.Invalid, "no happening is of the kind %q", h.Kind)

	case h.To.Before(h.From):
		return flex.Fail(
			flex.Invalid,
			"a %s ends at %s, before it begins",
			h.Kind,
			h.To.Format(time.RFC3339),
		)

	case h.Share < 0, h.Share > 1:
		return flex.Fail(flex.Invalid, "a share is 0 to 1, not %g", h.Share)

	case slices.Contains([]Kind{Outage, Restart, Kill}, h.Kind):
		return nil

	case h.Home == "":
		return flex.Fail(flex.Invalid, "a %s names no home", h.Kind)

	case h.KW <= 0:
		return flex.Fail(
			flex.Invalid,
			"a %s of %s has no power: kw is above 0",
			h.Kind,
			h.Home,
		)
	}

	return nil
}

// DrawHistory draws what happens at homes in the days from first on: cars that come on four evenings of
// five and want what they want, an endpoint that is down on one evening of three, flexd restarted at night
// on one of three, killed at some hour of each day, and readings that come late. Two draws from one
// seed are the same.
func DrawHistory(
	seed uint64,
	first flex.Day,
	homes, days int,
) (history []Happening) {
	r := rand.New(rand.NewPCG(seed, 13))
	kills := rand.New(rand.NewPCG(seed, 14)) // apart: the rest of a seed stays what it was

	for n := range days {
		evening := first.Add(n).Start().Add(17 * time.Hour)
		morning := time.Date(
			first.Year,
			first.Month,
			first.Dom+n+1,
			8,
			0,
			0,
			0,
			flex.London,
		).UTC()

		for h := range homes {
			history = append(
				history,
				drawHome(r, fmt.Sprint("car", h), evening, morning)...,
			)
		}

		down := evening.Add(time.Duration(r.IntN(120)) * 5 * time.Minute)
		if r.IntN(3) == 0 {
			up := down.Add(time.Duration(1+r.IntN(12)) * 10 * time.Minute)
			history = append(history, Happening{
				Kind: Outage,
				From: down,
				To:   up,
			})
		}

		ends := evening.Add(time.Duration(r.IntN(150)) * 5 * time.Minute)
		if r.IntN(3) == 0 {
			history = append(history, Happening{
				Kind: Restart,
				From: ends,
				To:   ends,
			})
		}

		history = append(history, drawKill(kills, evening))
	}

	return history
}

// drawKill draws when in the day after the evening's begin flexd is killed, and what is on disk by then.
func drawKill(r *rand.Rand, evening time.Time) Happening {
	at := evening.Add(time.Duration(r.IntN(24*12)) * 5 * time.Minute)

	return Happening{
		Kind:  Kill,
		From:  at,
		To:    at,
		Share: r.Float64(),
	}
}

// drawHome draws one home's evening.
func drawHome(
	r *rand.Rand,
	home string,
	evening, morning time.Time,
) (out []Happening) {
	stay := Happening{
		Kind: Stay,
		Home: home,
		KW:   []float64{3.7, 7.4}[len(home)%2],
		To:   morning,
	}

	stay.Need = float64(2 + r.IntN(30))
	stay.From = evening.Add(time.Duration(r.IntN(60)) * 5 * time.Minute)
	if r.IntN(5) > 0 {
		out = append(out, stay)
	}

	from := evening.Add(time.Duration(r.IntN(12)) * time.Hour)
	if r.IntN(4) == 0 {
		out = append(out, Happening{
			Kind: Late,
			Home: home,
			KW:   stay.KW,
			From: from,
			To:   from.Add(3 * time.Hour),
		})
	}

	return out
}

// ShrinkHistory takes out of a history what it fails without, until nothing more can go.
func ShrinkHistory(
	history []Happening,
	fails func([]Happening) (bool, error),
) ([]Happening, error) {
	size := (len(history) + 1) / 2
	for size > 0 {
		less, smaller, err := shrinkBy(history, size, fails)
		if err != nil {
			return nil, err
		}

		history = less
		if !smaller {
			size /= 2
		}
	}

	return history, nil
}

// shrinkBy takes out the first run of so many happenings without which the history still fails.
func shrinkBy(
	history []Happening,
	size int,
	fails func([]Happening) (bool, error),
) (less []Happening, smaller bool, err error) {
	for i := 0; i+size <= len(history); i++ {
		less := slices.Delete(slices.Clone(history), i, i+size)
		if len(less) == 0 {
			continue
		}

		failed, err := fails(less)
		if err != nil || failed {
			return less, failed, err
		}
	}

	return history, false, nil
}
