package control_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// meteredBox is a battery of 3 kW and 10 kWh as its makers build it: it does what it was sent, minute by minute, and nothing of it is
// taken from the planner. It loses 5 % each way, and a tenth stays in it.
type meteredBox struct {
	stored float64 // kWh
	home   float64 // kW that its home draws
}

// minute is what the box draws in a minute, in kW, by a mode.
func (b *meteredBox) minute(m battery.Mode) float64 {
	switch m {
	case battery.ModeCharge:
		return b.draw(3)
	case battery.ModeDischarge:
		return b.draw(-3)
	case battery.ModeSelfUse, battery.ModeFeedIn:
		return b.draw(-min(3, b.home))
	}

	return 0
}

// draw has the box draw a power for a minute, as far as it is neither full nor empty, and returns what it was.
func (b *meteredBox) draw(kilowatts float64) float64 {
	const loss = 0.95
	if kilowatts > 0 {
		kilowatts = min(kilowatts, max(0, 10-b.stored)/loss*60)
		b.stored += kilowatts * loss / 60
	} else {
		kilowatts = -min(-kilowatts, max(0, b.stored-1)*loss*60)
		b.stored += kilowatts / loss / 60
	}

	return kilowatts
}

// modeDrawn are the powers of a box by modes, from the beginning of the first to an instant, by minute.
func (b meteredBox) modeDrawn(modes []control.ModeSpan, from, to time.Time) map[time.Time]float64 {
	drawn := map[time.Time]float64{}
	for when := from; when.Before(to); when = when.Add(time.Minute) {
		drawn[when] = b.minute(modeAt(modes, when.Format(time.RFC3339)))
	}

	return drawn
}

// follow has a box do by minutes what it is sent until an instant: the newest dispatch that covers a minute, else the schedule.
func (h *fixture) follow(id flex.AssetID, b meteredBox, to time.Time) map[time.Time]float64 {
	h.Helper()
	drawn := map[time.Time]float64{}
	when := h.db.Now().Truncate(time.Minute)
	for when.Before(to) {
		h.micro.Store(when.UnixMicro())
		h.runBatteries()
		modes := h.modes(id)
		sent := h.sentPowers()

		next := flex.PeriodAt(when).End()
		for ; when.Before(next); when = when.Add(time.Minute) {
			if w, ordered := powerAt(sent, when); ordered {
				drawn[when] = b.draw(w.KW())
				continue
			}

			drawn[when] = b.minute(modeAt(modes, when.Format(time.RFC3339)))
		}

		level := flex.PeriodAt(when).Start().Format(time.RFC3339)
		h.read(id, flex.BatteryStateOfCharge, level, level, b.stored*10)
	}

	return drawn
}

// sentPowers are all dispatches, the newest first.
func (h *fixture) sentPowers() (sent []store.Dispatch) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		sent, err = tx.Dispatches(h.Context(), 1000)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}

	return sent
}

// powerAt is what the newest dispatch that covers an instant asks for.
func powerAt(sent []store.Dispatch, when time.Time) (flex.Watts, bool) {
	for i := range sent {
		if sent[i].Contains(when) {
			return sent[i].Assets[0].Power, true
		}
	}

	return 0, false
}

// against is how much a box moved against an instruction, in kWh, in the minutes of its window in which it did.
func against(in flex.Instruction, with, without map[time.Time]float64) (sum float64, first string) {
	for when := in.From; when.Before(in.To); when = when.Add(time.Minute) {
		more := with[when] - without[when]
		if in.Change > 0 {
			more = -more
		}

		if more > 0.02 { // kW; powers are sent in whole watts of half-hours
			sum += more / 60
			if first == "" {
				first = fmt.Sprintf("%s: %.2f kW, without %.2f", when.Format("15:04"), with[when], without[when])
			}
		}
	}

	return sum, first
}

// cutWindow is a battery by night that is called for a window, with what its box did by minute, and would have done without.
func (h *fixture) cutWindow(in flex.Instruction) (moved float64, wrong string) {
	h.Helper()
	id := h.nightBattery()
	box := meteredBox{stored: 1, home: 0.25}
	end := at("2026-01-15T06:30:00Z")
	without := box.modeDrawn(h.modes(id), h.db.Now().Truncate(time.Minute), end)
	sent := h.send(in)
	with := h.follow(id, box, end)
	if len(sent.Assets) == 0 {
		return 0, ""
	}

	sum, first := against(in, with, without)
	if sum > 0.02 {
		wrong = fmt.Sprintf("%.2f kWh against it, first at %s; planned before %s", sum, first, h.sentTo(id))
	}

	for when := in.From; when.Before(in.To); when = when.Add(time.Minute) {
		moved += (with[when] - without[when]) / 60
	}

	return moved, wrong
}

// TestInstruction_BatteryCutWindow has a battery be called for windows that begin and end within half-hours. By minutes, at a meter that knows
// nothing of plans, it never moves against the instruction in the window.
func TestInstruction_BatteryCutWindow(t *testing.T) {
	for _, c := range []struct {
		from, to string
		change   flex.Watts
		brings   bool
	}{
		{"02:40", "03:40", -2500, true},
		{"02:10", "03:10", -2500, true},
		{"03:10", "04:40", -2500, true},
		{"03:10", "03:40", -2500, false}, // covers no half-hour: only cars are called
		{"04:10", "05:10", -2500, true},
		{"00:10", "01:40", 2500, true},
		{"01:40", "02:40", 2500, true},
		{"23:40", "00:50", 2500, true},
	} {
		t.Run(c.from, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				day := map[bool]string{true: "2026-01-14T", false: "2026-01-15T"}[c.from > "20"]
				in := asks(day+c.from+":00Z", "2026-01-15T"+c.to+":00Z", c.change)
				moved, wrong := h.cutWindow(in)
				if wrong != "" {
					t.Error(wrong)
				}

				if brought := moved*float64(c.change) > 0; brought != c.brings {
					t.Errorf("%.2f kWh moved", moved)
				}
			})
		})
	}
}

// TestInstruction_BatteryRandomWindows is the same of random windows, and of random levels.
func TestInstruction_BatteryRandomWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 17))
	called := 0
	for range 25 {
		from := at("2026-01-14T23:30:00Z").Add(time.Duration(r.IntN(300)) * time.Minute)
		in := flex.Instruction{
			Span: flex.Span{From: from, To: from.Add(time.Duration(10+r.IntN(100)) * time.Minute)}, Change: -2500, Service: "dno", Who: "Ann",
		}
		if r.IntN(2) == 0 {
			in.Change = 2500
		}

		one(t, "2026-01-14T22:40:00Z", func(h *fixture) {
			moved, wrong := h.cutWindow(in)
			if wrong != "" {
				t.Errorf("%s to %s, %d W: %s", in.From.Format("15:04"), in.To.Format("15:04"), in.Change, wrong)
			}

			if moved != 0 {
				called++
			}
		})
	}

	if called < 8 {
		t.Errorf("%d windows were followed", called)
	}
}
