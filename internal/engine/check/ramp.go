package check

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Sent is a schedule that an asset was sent and took: it is what the asset does from then on, until
// it takes another.
type Sent struct {
	Asset [16]byte
	At    time.Time // when it was taken
	Power flex.Watts
	Steps []flex.Step
}

// Change is a change of planned power within 60 seconds: how much, up or down, in watts, and the second
// in which the minute ends.
type Change struct {
	Power flex.Watts
	At    time.Time
}

// LargestChange is the largest difference of the planned power of all assets between two seconds that are at most a
// minute apart. It knows nothing of how schedules are made: it reads what was sent, in any order.
// Before its first schedule and after the end of its last an asset counts as drawing nothing.
func LargestChange(sent []Sent) Change {
	turns := turnsOf(sent)
	var most Change
	var loads []loadAt // within the last minute, oldest first
	now := int64(0)

	for i := 0; i < len(turns); {
		at := turns[i].at
		before := loadAt{at: at - 1, power: now}

		for ; i < len(turns) && turns[i].at == at; i++ {
			now += turns[i].by
		}

		loads = append(loads, before, loadAt{at: at, power: now})

		for loads[0].at < at-60 {
			loads = loads[1:]
		}

		for _, l := range loads {
			by := max(now-l.power, l.power-now)

			if by > int64(most.Power) {
				most = Change{
					Power: flex.Watts(by),
					At:    time.Unix(at, 0).UTC(),
				}
			}
		}
	}

	return most
}

// loadAt is the power from a second on.
type loadAt struct{ at, power int64 }

// turn is a change of the planned power of an asset, in a second.
type turn struct{ at, by int64 }

// turnsOf is what each asset's schedules change, sorted by time.
func turnsOf(sent []Sent) []turn {
	sent = slices.Clone(sent)
	slices.SortStableFunc(sent, func(a, b Sent) int {
		return cmp.Or(
			slices.Compare(a.Asset[:], b.Asset[:]),
			a.At.Compare(b.At),
		)
	})

	var turns []turn
	for i, s := range sent {
		from, to := s.At.Unix(), int64(1)<<62

		if i+1 < len(sent) && sent[i+1].Asset == s.Asset {
			to = sent[i+1].At.Unix()
		}

		for _, step := range s.Steps {
			begin, end := max(from, step.From.Unix()), min(to, step.To.Unix())
			power := int64(max(0, min(step.Limit, s.Power)))

			if begin < end && power > 0 {
				turns = append(turns, turn{begin, power}, turn{end, -power})
			}
		}
	}

	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Compare(a.at, b.at)
	})

	return turns
}
