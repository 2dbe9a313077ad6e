package ramp_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/check"
	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
)

// TestTurns draws what is late: sent at its turn, it moves by at most the ramp, and nothing waits longer than
// the power before it takes. What is asked for at once does not wait.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := flex.Watts(rapid.IntRange(200_000, 2_000_000).Draw(t, "ramp"))
		var late []ramp.Late
		var total flex.Watts
		for n := range rapid.IntRange(0, 400).Draw(t, "cars") {
			l := ramp.Late{
				ID: id(n), Power: flex.Watts(rapid.SampledFrom([]int{3600, 7400, 22_000}).Draw(t, "power")),
				Slack: time.Duration(rapid.IntRange(-5, 600).Draw(t, "slack")) * time.Minute, AtOnce: rapid.IntRange(0, 20).Draw(t, "now") == 0,
			}

			if !l.AtOnce {
				total += l.Power
			}

			late = append(late, l)
		}

		var sent []check.Sent
		turns := ramp.Turns(late, flex.Ramp{All: most})
		for i, turn := range turns {
			if late[i].AtOnce {
				if turn != 0 {
					t.Fatalf("what is asked for at once waits %v", turn)
				}

				continue
			}

			if total <= most && turn != 0 {
				t.Fatalf("%v for a fleet that is within the ramp", turn)
			}

			if longest := time.Duration(float64(total)/float64(most*9/10-22_000)*float64(time.Minute)) + time.Minute; turn > longest {
				t.Fatalf("waits %v, more than %v", turn, longest)
			}

			on := []flex.Step{{Span: flex.Span{From: evening, To: evening.Add(100 * time.Hour)}, Limit: flex.NoLimit}}
			sent = append(sent, check.Sent{Asset: late[i].ID, At: evening.Add(turn), Power: late[i].Power, Steps: on})
			for j, other := range turns {
				if !late[j].AtOnce && late[i].Slack < late[j].Slack && turn > other {
					t.Fatalf("%v of slack waits longer than %v", late[i].Slack, late[j].Slack)
				}
			}
		}

		for i := range sent { // all end together long after: only the beginning is looked at
			sent[i].Steps[0].To = evening.Add(time.Duration(100+i) * time.Hour)
		}

		if got := check.LargestChange(sent); got.Power > most {
			t.Fatalf("moves by %d W in the minute to %v, under a ramp of %d", got.Power, got.At, most)
		}
	})
}

// TestTurns_Groups draws what is late in up to four groups, each schedule in none, one or two: every group moves by at
// most its own ramp and the whole by its own. A group that is busy holds up no other.
func TestTurns_Groups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := flex.Ramp{
			All:   flex.Watts(rapid.SampledFrom([]int{0, 400_000, 1_000_000}).Draw(t, "ramp")),
			Group: flex.Watts(rapid.SampledFrom([]int{0, 100_000, 200_000}).Draw(t, "ramp of a group")),
		}

		var late []ramp.Late
		for n := range rapid.IntRange(0, 300).Draw(t, "cars") {
			late = append(late, ramp.Late{
				ID: id(n), Power: flex.Watts(rapid.SampledFrom([]int{3600, 7400, 22_000}).Draw(t, "power")),
				Groups: ramp.LateGroups{rapid.IntRange(0, 2).Draw(t, "region"), rapid.SampledFrom([]int{0, 3, 4}).Draw(t, "feeder")},
				Slack:  time.Duration(rapid.IntRange(-5, 600).Draw(t, "slack")) * time.Minute,
			})
		}

		turns := ramp.Turns(late, most)
		for k := range 5 {
			var sent []check.Sent
			total := flex.Watts(0)
			for i, l := range late {
				if k > 0 && l.Groups[0] != k && l.Groups[1] != k {
					continue
				}

				end := evening.Add(time.Duration(100+i) * time.Hour) // one after the other
				on := []flex.Step{{Span: flex.Span{From: evening, To: end}, Limit: flex.NoLimit}}
				sent = append(sent, check.Sent{Asset: l.ID, At: evening.Add(turns[i]), Power: l.Power, Steps: on})
				total += l.Power
			}

			limit := most.Group
			if k == 0 {
				limit = most.All
			}
			if got := check.LargestChange(sent); limit > 0 && got.Power > limit {
				t.Fatalf("part %d moves by %d W in the minute to %v, under a ramp of %d", k, got.Power, got.At, limit)
			}
		}

		for i, l := range late {
			if most.All == 0 && l.Groups == (ramp.LateGroups{}) && turns[i] > 0 {
				t.Fatalf("one of no group waits %v", turns[i])
			}
		}
	})
}

// TestTurns_Waiting asks for turns once more while some are still to come: they stay, also beside what became late since.
func TestTurns_Waiting(t *testing.T) {
	const most, passed = 100_000, 32 * time.Second
	var late, rest []ramp.Late
	for n := range 60 {
		late = append(late, ramp.Late{ID: id(n), Power: 7400})
	}

	for i, turn := range ramp.Turns(late, flex.Ramp{All: most}) {
		if turn > passed {
			late[i].Wait = turn - passed
			rest = append(rest, late[i])
		}
	}
	if len(rest) < 45 {
		t.Fatalf("%d of 60 are to come", len(rest))
	}

	rest = append(rest, ramp.Late{ID: id(60), Power: 7400, Slack: time.Hour})
	turns := ramp.Turns(rest, flex.Ramp{All: most})
	for i := range len(rest) - 1 {
		if turns[i] != rest[i].Wait {
			t.Errorf("%d waits %v, and %v before", i, turns[i], rest[i].Wait)
		}
	}
}
