package check

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Sent is a schedule that an asset was sent and accepted. The asset follows it until it
// accepts another.
type Sent struct {
	Asset [16]byte
	At    time.Time // when it was accepted
	Power flex.Watts
	Steps []flex.Step
}

// Change is a change of planned power within 60 seconds: its size in watts, up or down, and
// the second in which the minute ends.
type Change struct {
	Power flex.Watts
	At    time.Time
}

// LargestChange returns the largest difference between the planned power of all assets at two
// seconds that are at most a minute apart. It only reads what was sent, in any order. Before
// its first schedule and after the end of its last one, an asset counts as drawing nothing.
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

// loadAt is the total power from a second on.
type loadAt struct{ at, power int64 }

// turn is a change of the planned power of an asset at a second.
type turn struct{ at, by int64 }

// turnsOf returns the changes that the schedules of each asset cause, sorted by time.
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
