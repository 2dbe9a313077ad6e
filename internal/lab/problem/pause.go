package problem

import (
	"errors"
	"math"
	"time"

	"flexd/internal/engine/check"
	"flexd/internal/engine/pause"
	"flexd/internal/flex"
)

// pauseLine has the fields of the pause family.
type pauseLine struct {
	Price        []float64  `json:"price_p_per_kwh"`
	SlotMinutes  int64      `json:"slot_minutes"`
	ChargerKW    float64    `json:"charger_kw"`
	Blocks       [][2]int64 `json:"blocks_min"`
	ReadyBy      int64      `json:"ready_by_min"`
	PauseMinutes int64      `json:"pause_minutes"`
	MakeUp       string     `json:"make_up"`
}

// makeUpRules has the rules for making up the paused energy.
var makeUpRules = map[string]pause.MakeUp{
	"none":     pause.MakeUpNone,
	"earliest": pause.MakeUpEarliest,
	"append":   pause.MakeUpAppend,
}

// pauseProblem is a problem of the pause family, in minutes.
type pauseProblem struct {
	pause.Grid
	kw     float64
	best   pause.Candidate
	made   bool
	blocks []pause.Interval
}

func decodePause(line []byte) (solver, error) {
	l := pauseLine{SlotMinutes: 60 * halfHour}
	if err := unmarshal(line, &l); err != nil {
		return nil, err
	}

	n := len(l.Price)
	end := int64(n) * l.SlotMinutes
	makeUp, ok := makeUpRules[l.MakeUp]
	if !ok {
		return nil, flex.Fail(
			flex.Invalid,
			"make_up is %q, which is not none, earliest or append",
			l.MakeUp,
		)
	}

	err := errors.Join(
		slotCount("price_p_per_kwh", n),
		series("price_p_per_kwh", l.Price, n, -maxPrice, maxPrice),
		within("slot_minutes", float64(l.SlotMinutes), 1, 1440),
		within("charger_kw", l.ChargerKW, 0, maxKW),
		within(
			"pause_minutes",
			float64(l.PauseMinutes),
			1,
			float64(max(1, end)),
		),
		within("ready_by_min", float64(l.ReadyBy), 0, float64(end)),
	)

	if err != nil {
		return nil, err
	}

	p := &pauseProblem{
		kw: l.ChargerKW,
		Grid: pause.Grid{
			Pause:     l.PauseMinutes,
			ReadyBy:   l.ReadyBy,
			MakeUp:    makeUp,
			NotBefore: math.MinInt64,
			Prices:    pause.PriceSeries{Slot: l.SlotMinutes, Price: l.Price},
		},
	}

	if err := l.addBlocks(p, end); err != nil {
		return nil, err
	}

	return p, nil
}

// addBlocks adds the charging blocks, in minutes, up to an end.
func (l *pauseLine) addBlocks(p *pauseProblem, end int64) error {
	last := int64(0)
	for i, b := range l.Blocks {
		if b[0] < last || b[1] <= b[0] || b[1] > end {
			return flex.Fail(
				flex.Invalid,
				"blocks_min[%d] is %v, which does not follow the block before within 0 to %d",
				i,
				b,
				end,
			)
		}

		last = b[1]
		if i > 0 && p.Blocks[len(p.Blocks)-1].To == b[0] {
			p.Blocks[len(p.Blocks)-1].To = b[1] // charging continues, so it stays one block
			continue
		}

		p.Blocks = append(p.Blocks, pause.Interval{From: b[0], To: b[1]})
	}

	if len(p.Blocks) == 0 {
		return flex.Fail(
			flex.Invalid,
			"blocks_min is empty, where a block of [from, to] minutes would be right",
		)
	}

	return nil
}

func (p *pauseProblem) slots() int { return len(p.Prices.Price) }

func (p *pauseProblem) plan(*Scratch) {
	p.blocks = p.blocks[:0]
	p.best, p.made = p.Best()
	if p.made {
		p.blocks = p.Apply(p.blocks, p.best)
	} else {
		p.blocks = append(p.blocks, p.Blocks...)
	}
}

func (p *pauseProblem) prove(*Scratch) (Certificate, error) {
	return Certificate{}, nil
}

func (p *pauseProblem) check(*Scratch) error {
	spans := func(s []pause.Interval) []flex.Span {
		var out []flex.Span
		for _, b := range s {
			out = append(out, flex.Span{From: minute(b.From), To: minute(b.To)})
		}
		return out
	}

	q := pause.Problem{
		Blocks:  spans(p.Blocks),
		Pause:   minute(p.Pause).Sub(minute(0)),
		MakeUp:  p.MakeUp,
		ReadyBy: minute(p.ReadyBy),
	}

	made := pause.Plan{Blocks: spans(p.blocks), Made: p.made}
	if p.made {
		// the format wants the best pause, even one that costs
		q.Worth, made.Saved = math.MinInt64, 1
		made.Pause = flex.Span{
			From: minute(p.best.At),
			To:   minute(p.best.At + p.Pause),
		}

		made.MadeUp = spans(p.MadeUp(nil, p.best))
	}

	return check.Pause(q, made)
}

// minute returns an instant on the problem's own time line.
func minute(m int64) time.Time { return time.Unix(60*m, 0).UTC() }

func (p *pauseProblem) answer() Answer {
	cost, blocks := 0.0, make([][2]int64, len(p.blocks))
	for i, b := range p.blocks {
		blocks[i] = [2]int64{b.From, b.To}
		cost += p.Prices.Sum(b.From, b.To) * p.kw / 60
	}

	return Answer{
		Answer: struct {
			Blocks [][2]int64 `json:"blocks_min"`
		}{blocks},
		Cost: cost, LowerBound: cost, Feasible: p.made,
	}
}
