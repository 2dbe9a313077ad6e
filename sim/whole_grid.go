package sim

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// gridPrice is what an instruction's service pays, in £ a MWh.
const gridPrice = 120.0

// instructed is an instruction that the grid's side gave.
type instructed struct {
	id client.InstructionID
	Happening
}

// instruct has the cars draw less for a time.
func (w *whole) instruct(ctx context.Context, h Happening) error {
	in := client.InstructionRequest{
		ChangeKW:       new(-h.KW),
		StartTimestamp: client.At(h.From),
		EndTimestamp:   client.At(h.To),
		Service:        "dno",
		PriceGBPPerMWh: gridPrice,
		Reason:         "simulated",
	}

	made, err := w.client.Instruct(ctx, in, client.InstructionQuery{})
	if err != nil {
		return fmt.Errorf("instruct: %w", err)
	}

	w.deaf.Store(h.Deaf)
	w.instructions = append(
		w.instructions,
		instructed{id: made.Instruction.ID, Happening: h},
	)

	return nil
}

// checkInstructions holds the laws of instructions: what is reported of a car is what it drew, and it drew
// no more than it was sent, and money is energy times price.
func (w *whole) checkInstructions(ctx context.Context) error {
	for _, i := range w.instructions {
		r, err := w.client.Instruction(
			ctx,
			i.id,
			client.InstructionReportQuery{Assets: true},
		)
		if err != nil {
			return err
		}

		for n, half := range r.HalfHours {
			for _, part := range r.Assets {
				w.broke(w.partBroken(i, n, half, part)...)
			}
		}

		if s := r.Settled; s != nil {
			w.broke(moneyBroken(i.From, s, r.NumCalled*len(r.HalfHours))...)
		}
	}

	return nil
}

// partBroken holds the law of targets on what a car drew in a half-hour of an instruction. Nothing is said of
// one in which it was called or released, or in which it could not be reached.
func (w *whole) partBroken(
	i instructed,
	n int,
	half client.InstructionReportHalf,
	part client.InstructionReportPart,
) []string {
	from, to := half.StartTimestamp.Time, half.EndTimestamp.Time
	called := !part.CalledAt.After(from.Add(-soon)) &&
		(part.ReleasedAt.IsZero() || part.ReleasedAt.After(to))
	whole := to.Sub(from) == flex.HalfHour && !to.After(i.To)
	if !called || !whole || w.unreached(from, to) {
		return nil
	}

	drew := w.metered[part.AssetID][flex.PeriodAt(from)]
	about := fmt.Sprintf(
		"%s in the half-hour from %s",
		w.named(part.AssetID),
		from.Format(time.RFC3339),
	)

	// What a tank or a heat pump draws follows its water and the weather too, so that only its report is held.
	var broken []string
	if expected := part.ExpectedKWh[n]; drew > expected+meterSlack && !part.Heater {
		broken = append(broken, fmt.Sprintf(
			"target: %s drew %.2f kWh of %.2f", about, drew, expected,
		))
	}

	if m := part.MeteredKWh[n]; m != nil && math.Abs(*m-drew) > meterSlack {
		broken = append(broken, fmt.Sprintf(
			"target: %s drew %.2f kWh and is reported with %.2f", about, drew, *m,
		))
	}

	return broken
}

// unreached reports whether the endpoint was out of reach, or flexd not there, in a span or in the hour
// before it.
func (w *whole) unreached(from, to time.Time) bool {
	return slices.ContainsFunc(w.unsteady, func(h Happening) bool {
		return h.To.Add(time.Hour).After(from) && h.From.Before(to)
	})
}

// named is the charger of an asset.
func (w *whole) named(asset client.AssetID) string {
	for _, h := range w.homes {
		for _, c := range h.chargers {
			if c.asset == asset {
				return c.ExternalID
			}
		}
	}

	return asset.String()
}

// moneyBroken holds the law of deviations: of each half-hour of a car that was called there is one at most, and
// their money is their energy times the price.
func moneyBroken(
	at time.Time,
	s *client.InstructionSettled,
	most int,
) []string {
	worth := -s.FlexKWh * gridPrice / 1000
	slack := 0.01 * float64(1+s.NumEvents)
	if math.Abs(s.RevenueGBP-worth) > slack || s.NumEvents > most {
		return []string{fmt.Sprintf(
			"money: the instruction of %s has %d flex events, %d at most, with £%.2f for %.2f kWh",
			at.Format(time.RFC3339),
			s.NumEvents,
			most,
			s.RevenueGBP,
			s.FlexKWh,
		)}
	}

	return nil
}

// arrivals holds the law of order against the pushes as they come in: at a charger no push is older than one
// that it has taken.
type arrivals struct {
	mu     sync.Mutex
	newest map[string]string // the latest instant at which a push that was taken was made, by charger
	first  map[string]string // the first push that it took
	broken []string
}

// madeAt is the part of a push's id that says when it was made: it sorts as the instants do.
func madeAt(id string) string { return id[:min(len(id), len("01234567-89ab"))] }

// arrive looks at a push before it is answered.
func (a *arrivals) arrive(charger, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if madeAt(id) < a.newest[charger] {
		a.broken = append(a.broken, fmt.Sprintf("order: %s was sent an older push after a newer", charger))
	}
}

// taken notes that a charger took a push.
func (a *arrivals) taken(h Received) { a.note(h.Charger.ExternalID, h.EventID) }

// note notes the id of a push that a device took.
func (a *arrivals) note(name, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.newest[name] = max(a.newest[name], madeAt(id))
	if a.first[name] == "" {
		a.first[name] = id
	}
}

// wrong notes a push that no device can take.
func (a *arrivals) wrong(found string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = append(a.broken, found)
}

// replay has the first push of each charger come in once more.
func (a *arrivals) replay() {
	for name, id := range a.first {
		a.arrive(name, id)
	}
}

// found returns what broke the law.
func (a *arrivals) found() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.broken
}

// receive takes the pushes.
func (w *whole) receive(out http.ResponseWriter, in *http.Request) {
	switch {
	case w.down.Load():
		http.Error(out, "down", http.StatusServiceUnavailable)

	case w.deaf.Load():
		out.WriteHeader(http.StatusNoContent)

	default:
		name := in.URL.Path[strings.LastIndexByte(in.URL.Path, '/')+1:]
		w.pushes.arrive(name, in.Header.Get("Webhook-Id"))
		w.endpoint.ServeHTTP(out, in)
	}
}

// cyclesMax is how often a battery may be emptied from noon to noon. Export earns more than a cheap hour costs, so that
// it pays to empty a battery before the cheap span and within it: twice and a little more in the night with an hour more.
const cyclesMax = 3

// checkWear holds, at noon, the law of wear: how much each battery gave since the noon before.
func (w *whole) checkWear() {
	for _, name := range w.names() {
		b := w.homes[name].battery
		if b == nil {
			continue
		}

		if b.given > cyclesMax*float64(b.Capacity) {
			w.broke(fmt.Sprintf(
				"wear: %s gave %.1f kWh in the day to %s, and holds %.1f",
				b.Name,
				b.given/1000,
				w.time().Format(time.DateOnly),
				b.Capacity.KWh(),
			))
		}

		b.given = 0
	}
}
