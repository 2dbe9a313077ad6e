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
	// from now until the need would take all of the time that is left
	Slack  time.Duration
	AtOnce bool // what a user waits for
}

// turnEvery is what turns are rounded down to.
const turnEvery = 5 * time.Second

// Turns is how long from now each late schedule waits, in their order, so that those which are sent in
// a minute have at most a ramp of power between them: what an asset does can change when its
// schedule comes, whatever that says. Who has the least slack comes first. All are zero if together they
// are no more than the ramp.
func Turns(late []Late, ramp flex.Watts) []time.Duration {
	turns := make([]time.Duration, len(late))
	var order []int
	var sum, largest flex.Watts
	for i, l := range late {
		if !l.AtOnce {
			order = append(order, i)
			sum += l.Power
			largest = max(largest, l.Power)
		}
	}

	if ramp <= 0 || sum <= ramp {
		return turns
	}

	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(
			cmp.Compare(late[i].Slack, late[j].Slack),
			bytes.Compare(late[i].ID[:], late[j].ID[:]),
		)
	})

	// A tenth is left for rounding and for the time that sending takes.
	pace := max(ramp*9/10-largest, largest, 1)
	sum = 0
	for _, i := range order {
		turns[i] = (time.Duration(float64(sum) / float64(pace) * float64(time.Minute))).Truncate(
			turnEvery,
		)
		sum += late[i].Power
	}

	return turns
}
