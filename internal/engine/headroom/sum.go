package headroom

import (
	"time"

	"flexd/internal/flex"
)

// BlockMinutes is the length of a Block, in minutes.
const BlockMinutes = 240

// Block is what many assets draw together in BlockMinutes minutes, and how many start.
type Block struct {
	Load   [BlockMinutes]int64 // W, by minute
	Starts [BlockMinutes]int64
}

// Sum is what many assets draw together, by the number of the block since 1970. It counts
// steps as a Profile does, but without an end.
type Sum map[int64]*Block

// BlockAt returns the number of the block that contains an instant.
func BlockAt(at time.Time) int64 { return at.Unix() / 60 / BlockMinutes }

// Add counts what a car of a given power draws by its steps, and their starts, from a block
// on. A car that is charging already when the steps begin does not start then.
func (s Sum) Add(
	steps []flex.Step,
	power flex.Watts,
	running bool,
	from int64,
) {
	s.change(steps, power, running, from, 1)
}

// Remove reverses Add.
func (s Sum) Remove(
	steps []flex.Step,
	power flex.Watts,
	running bool,
	from int64,
) {
	s.change(steps, power, running, from, -1)
}

// Reserve counts what is drawn by steps, without their starts, from a block on. Release
// reverses it.
func (s Sum) Reserve(
	steps []flex.Step,
	power flex.Watts,
	from int64,
) {
	s.fill(steps, power, from, 1)
}

// Release takes back what was reserved.
func (s Sum) Release(
	steps []flex.Step,
	power flex.Watts,
	from int64,
) {
	s.fill(steps, power, from, -1)
}

func (s Sum) change(
	steps []flex.Step,
	power flex.Watts,
	running bool,
	from, sign int64,
) {
	s.fill(steps, power, from, sign)
	for _, step := range steps {
		starts := step.Limit > 0 && !running
		running = step.Limit > 0

		begin := step.From.Unix() / 60
		if starts && begin >= from*BlockMinutes {
			s.block(begin).Starts[begin%BlockMinutes] += sign
		}
	}
}

func (s Sum) fill(
	steps []flex.Step,
	power flex.Watts,
	from, sign int64,
) {
	for _, step := range steps {
		draw := int64(min(step.Limit, power))
		first := max(from*BlockMinutes, step.From.Unix()/60)
		end := (step.To.Unix() + 59) / 60

		for m := first; draw != 0 && m < end; m++ {
			s.block(m).Load[m%BlockMinutes] += sign * draw
		}
	}
}

// block is the block of a minute since 1970.
func (s Sum) block(minute int64) *Block {
	n := minute / BlockMinutes
	if s[n] == nil {
		s[n] = &Block{}
	}

	return s[n]
}

// Merge adds another sum.
func (s Sum) Merge(other Sum) {
	for n, more := range other {
		b := s.block(n * BlockMinutes)
		for m := range more.Load {
			b.Load[m] += more.Load[m]
			b.Starts[m] += more.Starts[m]
		}
	}
}

// Subtract takes another sum away.
func (s Sum) Subtract(other Sum) {
	for n, load := range other {
		b := s.block(n * BlockMinutes)
		for m := range load.Load {
			b.Load[m] -= load.Load[m]
			b.Starts[m] -= load.Starts[m]
		}
	}
}

// AddSum counts what many assets draw together under the cap k alone.
func (r *Profile) AddSum(k int, s Sum) {
	if r.load[k] == nil {
		r.load[k] = make([]int64, horizon)
	}
	if r.starts[k] == nil {
		r.starts[k] = make([]int32, horizon)
	}

	for n, b := range s {
		from := int(n*BlockMinutes - r.first)
		for i := max(0, -from); i < BlockMinutes && from+i < horizon; i++ {
			r.load[k][from+i] += b.Load[i]
			r.starts[k][from+i] += int32(b.Starts[i])
		}
	}
}

// IsZero reports whether nothing is drawn, and nothing starts.
func (s Sum) IsZero() bool {
	for _, b := range s {
		if *b != (Block{}) {
			return false
		}
	}

	return true
}
