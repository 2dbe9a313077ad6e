package ramp

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Late is a schedule that waits to be sent and should have been before: pushes were halted, its endpoint
// or flexd itself was down.
type Late struct {
	ID    [16]byte // of its asset
	Power flex.Watts
	// the groups that it is of and that have a ramp of their own, by numbers from 1 on; 0 for none
	Groups LateGroups
	// from now until the need would take all of the time that is left
	Slack  time.Duration
	AtOnce bool // what a user waits for
	// from now until the turn that it was given before, if it waits for one: it comes no earlier
	Wait time.Duration
}

// LateGroups are the numbers of groups: a GSP group, and constraint groups that lie in each other.
type LateGroups [1 + flex.CapDepthMax]int

// turnEvery is what turns are whole multiples of.
const turnEvery = 5 * time.Second

// within is how many turns lie in a minute, both ends counted.
const within = int(time.Minute/turnEvery) + 1

// Turns is how long from now each late schedule waits, in their order, so that those which are sent in
// a minute have at most a ramp of power between them, all together and those of each group: what an asset does
// can change when its schedule comes, whatever that says. Who has the least slack comes first among those of
// the same groups, and one whose group is busy holds up no other. What all together is no more than its ramp
// is not held back by it. One that waits for a turn keeps it, or gets a later one.
func Turns(late []Late, most flex.Ramp) []time.Duration {
	turns := make([]time.Duration, len(late))
	for i := range late {
		if !late[i].AtOnce {
			turns[i] = late[i].Wait
		}
	}

	q := queueOf(late, most)
	if len(q) == 0 {
		return turns
	}

	var order []int
	for i := range late {
		if !late[i].AtOnce {
			order = append(order, i)
		}
	}

	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(
			cmp.Compare(late[i].Slack, late[j].Slack),
			bytes.Compare(late[i].ID[:], late[j].ID[:]),
		)
	})

	next := map[LateGroups]int{} // turn of those of the same groups
	for _, i := range order {
		l := &late[i]
		free, first := next[l.Groups], l.first()
		turn := max(free, first)
		for !q.fits(l, turn) {
			turn++
		}

		q.send(l, turn)
		if first <= free { // else those after it may come before it
			next[l.Groups] = turn
		}
		if turn > first {
			turns[i] = time.Duration(turn) * turnEvery
		}
	}

	return turns
}

// first is the earliest turn that a schedule may have.
func (l *Late) first() int {
	return int((l.Wait + turnEvery - 1) / turnEvery)
}

// queue is what is sent of the parts of a fleet whose ramp binds: 0 is the whole, others are groups.
type queue map[int]*part

// part is what is sent of it.
type part struct {
	most flex.Watts   // in any minute
	sent []flex.Watts // by turns
}

// queueOf finds the parts that wait with more power than their ramp.
func queueOf(late []Late, most flex.Ramp) queue {
	sum := map[int]flex.Watts{}
	for i := range late {
		if !late[i].AtOnce {
			late[i].parts(func(k int) { sum[k] += late[i].Power })
		}
	}

	q := queue{}
	for k, power := range sum {
		limit := most.Group
		if k == 0 {
			limit = most.All
		}

		if limit > 0 && power > limit {
			q[k] = &part{most: limit * 19 / 20} // the rest is for the time that sending takes
		}
	}

	return q
}

// parts calls fn with the parts that a schedule is of.
func (l *Late) parts(fn func(k int)) {
	fn(0)
	for _, k := range l.Groups {
		if k > 0 {
			fn(k)
		}
	}
}

// fits reports whether a schedule may be sent at a turn.
func (q queue) fits(l *Late, turn int) bool {
	fits := true
	l.parts(func(k int) {
		if p := q[k]; p != nil {
			fits = fits && p.fits(turn, l.Power)
		}
	})

	return fits
}

// send counts a schedule as sent at a turn.
func (q queue) send(l *Late, turn int) {
	l.parts(func(k int) {
		p := q[k]
		if p == nil {
			return
		}

		for len(p.sent) <= turn {
			p.sent = append(p.sent, 0)
		}
		p.sent[turn] += l.Power
	})
}

// fits reports whether so much more power may be sent at a turn: no minute has more than the ramp, unless
// one schedule alone does, and none is sent in its first seconds alone.
func (p *part) fits(turn int, power flex.Watts) bool {
	if p.at(turn) >= max(1, p.most/flex.Watts(within)) {
		return false
	}

	var sum flex.Watts // of the minute that ends with a turn
	for i := turn - within + 1; i < turn; i++ {
		sum += p.at(i)
	}

	for last := turn; last < turn+within; last++ {
		sum += p.at(last)
		if sum > 0 && sum+power > p.most {
			return false
		}
		sum -= p.at(last - within + 1)
	}

	return true
}

// at is what is sent at a turn.
func (p *part) at(turn int) flex.Watts {
	if turn < 0 || turn >= len(p.sent) {
		return 0
	}
	return p.sent[turn]
}
