package ramp

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Late is a schedule that is sent later than planned, because pushes were halted, its endpoint
// was down, or flexd was.
type Late struct {
	ID    [16]byte // of its asset
	Power flex.Watts
	// its groups with a ramp of their own, by numbers from 1 on; 0 for none
	Groups LateGroups
	// the time until the need would take all of the remaining time
	Slack  time.Duration
	AtOnce bool // a user waits for it
	// the time until its earlier turn, if it waits for one: it is sent no earlier
	Wait time.Duration
}

// LateGroups has the numbers of groups: a GSP group, and nested constraint groups.
type LateGroups [1 + flex.CapDepthMax]int

// turnEvery is the interval of turns.
const turnEvery = 5 * time.Second

// within is the number of turns in a minute, both ends included.
const within = int(time.Minute/turnEvery) + 1

// Turns returns how long each late schedule waits from now, in their order. The schedules sent
// in a minute may change the power by at most the ramp, in total and in each group; a schedule
// may change it by up to the asset's power, whatever it says. Among schedules of the same
// groups, the least slack goes first. A schedule whose group is busy does not delay others. A
// ramp does not delay anything if the total is within it. A schedule that waits for a turn
// keeps it or gets a later one.
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

	next := map[LateGroups]int{} // next turn of schedules of the same groups
	for _, i := range order {
		l := &late[i]
		free, first := next[l.Groups], l.first()
		turn := max(free, first)
		for !q.fits(l, turn) {
			turn++
		}

		q.send(l, turn)
		if first <= free { // otherwise later schedules may have an earlier turn
			next[l.Groups] = turn
		}
		if turn > first {
			turns[i] = time.Duration(turn) * turnEvery
		}
	}

	return turns
}

// first returns the earliest turn that a schedule may have.
func (l *Late) first() int {
	return int((l.Wait + turnEvery - 1) / turnEvery)
}

// queue has the parts of a fleet whose ramp binds, by group; 0 is the whole fleet.
type queue map[int]*part

// part is the state of one part of the fleet.
type part struct {
	most flex.Watts   // in any minute
	sent []flex.Watts // by turns
}

// queueOf finds the parts whose waiting power exceeds their ramp.
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
			q[k] = &part{most: limit * 19 / 20} // the rest allows for the time that sending takes
		}
	}

	return q
}

// parts calls fn with the parts that contain a schedule.
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

// send records a schedule as sent at a turn.
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

// fits reports whether the additional power may be sent at a turn. No minute may exceed the
// ramp, except for a single schedule that does by itself.
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

// at returns the power sent at a turn.
func (p *part) at(turn int) flex.Watts {
	if turn < 0 || turn >= len(p.sent) {
		return 0
	}
	return p.sent[turn]
}
