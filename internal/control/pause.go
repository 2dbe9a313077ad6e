package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"flexd/internal/engine/check"
	"flexd/internal/engine/pause"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/wire"
)

// Rules of limited_pause.
const (
	// BlocksMax is the number of blocks that a client's schedule may have.
	BlocksMax = 96
	// PauseWorth is what a pause must save at market prices: 2 p.
	PauseWorth flex.MicroPounds = 20_000
	// PauseRest is the least time from the start of one pause of an asset to the next, so
	// that a plug-in has no second one when the client asks again.
	PauseRest = 12 * time.Hour
)

// Block is one time of charging in a client's own schedule, as the client wrote it.
type Block struct{ Start, End string }

// PlugInSchedule puts one pause into the client's schedule: one settlement period, which lies
// within one block and has not begun yet, where the market's known prices are highest. A pause
// never takes all of a charge: without more than half an hour of charging ahead there is none,
// nor where the rest would not hold the energy that the asset's intent asks for. The schedule
// also comes back as it was if no pause is worth it, or if there was one within PauseRest.
// Blocks may come in any order, and keep it; they may touch, but not overlap.
//
// An asset that is no charger is NotFound, like one of another organisation; a site without
// consent to limited_pause is Forbidden; blocks that are none are Malformed.
func (d *Service) PlugInSchedule(ctx context.Context, org flex.OrgID, asset flex.AssetID, blocks []Block) (out []Block, err error) {
	spans, err := readBlocks(blocks)
	if err != nil {
		return nil, err
	}

	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockAsset(ctx, asset); err != nil && flex.KindOf(err) != flex.NotFound {
			return err
		}

		p, err := pausable(ctx, tx, asset)
		if err != nil {
			return err
		}

		kept := make([]store.Block, len(blocks))
		for i, b := range blocks {
			kept[i] = store.Block(b)
		}

		if err := tx.AddEvent(ctx, asset, "plug_in_schedule", store.AssetEvent{Blocks: kept}); err != nil {
			return err
		}

		var made pause.Plan
		if p.Last.IsZero() || tx.Now().Sub(p.Last) >= PauseRest {
			made, err = d.pause(ctx, tx, p, spans)
			if err != nil {
				return err
			}
		}

		out = split(blocks, spans, made.Pause)
		return tx.SetPause(ctx, p.Asset, made.Pause, made.Saved, endOf(spans))
	})
	return out, err
}

// pausable is a charger into whose schedule a pause may be put.
func pausable(ctx context.Context, tx *store.Tx, asset flex.AssetID) (store.Pausable, error) {
	p, err := tx.Pausable(ctx, asset)
	switch {
	case err != nil:
		return p, err
	case p.Asset.Type != flex.Charger:
		return p, flex.Fail(flex.NotFound, "charger not found or not authorized")
	case !p.Consented:
		return p, flex.Fail(flex.Forbidden, "the site has not consented to %s: enrol it in %s first", flex.LimitedPauseMethod, flex.LimitedPause)
	}
	return p, nil
}

// pause places the pause.
func (d *Service) pause(ctx context.Context, tx *store.Tx, a store.Pausable, spans []flex.Span) (pause.Plan, error) {
	now := tx.Now().Add(time.Second - 1).Truncate(time.Second)
	sorted := slices.Clone(spans)
	slices.SortFunc(sorted, func(a, b flex.Span) int { return a.From.Compare(b.From) })
	power := DefaultPower

	if a.Asset.Power != nil && *a.Asset.Power > 0 {
		power = *a.Asset.Power
	}

	if !canPause(sorted, now, power, a.Need) {
		return pause.Plan{}, nil
	}

	ps, err := prices(ctx, tx, tx.Now())
	if err != nil {
		return pause.Plan{}, err
	}

	p := pause.Problem{Blocks: wholePeriods(sorted), Prices: ps, Power: power, Worth: PauseWorth, NotBefore: nextPeriod(now)}
	made := pause.Solve(p)
	if err := check.Pause(p, made); err != nil {
		d.log().ErrorContext(ctx, "a pause breaks a law and is not made", "asset", a.Asset.ID, "law", err)
		return pause.Plan{}, nil
	}

	return made, nil
}

// endOf returns when the last of the blocks ends.
func endOf(blocks []flex.Span) (end time.Time) {
	for _, b := range blocks {
		if b.To.After(end) {
			end = b.To
		}
	}
	return end
}

// canPause reports whether a charge can spare a settlement period of what is ahead of it:
// some charging must be left, and the energy that is known to be needed.
func canPause(blocks []flex.Span, now time.Time, power flex.Watts, need flex.WattHours) bool {
	ahead := -flex.HalfHour
	for _, b := range blocks {
		ahead += b.Meet(flex.Span{From: now, To: b.To}).Len()
	}
	left := flex.WattHours(int64(power) * int64(ahead/time.Second) / 3600)
	return ahead > 0 && left >= need
}

// wholePeriods cuts the blocks down to the settlement periods that lie whole within each, so
// that a pause among them is one of these and is settled as such.
func wholePeriods(blocks []flex.Span) (whole []flex.Span) {
	for _, b := range blocks {
		b.From, b.To = nextPeriod(b.From), flex.PeriodAt(b.To).Start()
		if b.From.Before(b.To) {
			whole = append(whole, b)
		}
	}
	return whole
}

// nextPeriod returns when the first settlement period begins that begins no earlier.
func nextPeriod(t time.Time) time.Time {
	p := flex.PeriodAt(t)
	if p.Start().Before(t) {
		p = p.Add(1)
	}
	return p.Start()
}

// readBlocks reads the blocks in whole seconds, inward, and refuses those that are empty or
// overlap.
func readBlocks(blocks []Block) ([]flex.Span, error) {
	if len(blocks) > BlocksMax {
		return nil, flex.Fail(flex.Malformed, "charging_schedule has %d blocks, more than %d", len(blocks), BlocksMax)
	}

	spans, order := make([]flex.Span, len(blocks)), make([]int, len(blocks))
	for i, b := range blocks {
		from, err1 := wire.ParseTime(b.Start)

		to, err2 := wire.ParseTime(b.End)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, flex.Fail(flex.Malformed, "charging_schedule[%d]: a timestamp is %v", i, err)
		}

		spans[i] = flex.Span{From: from.Add(time.Second - 1).Truncate(time.Second), To: to.Truncate(time.Second)}
		order[i] = i

		if !from.Before(to.Time) {
			return nil, flex.Fail(flex.Malformed, "charging_schedule[%d] ends at %s, which is not after its start at %s", i, b.End, b.Start)
		}
	}

	return spans, apart(spans, order)
}

// apart refuses blocks that overlap. The order, of their places, is sorted.
func apart(spans []flex.Span, order []int) error {
	slices.SortFunc(order, func(i, j int) int { return spans[i].From.Compare(spans[j].From) })

	for n := 1; n < len(order); n++ {
		if i, j := order[n-1], order[n]; spans[j].From.Before(spans[i].To) {
			return flex.Fail(flex.Malformed, "charging_schedule[%d] and [%d] overlap: join them, or have one end where the other starts", min(i, j), max(i, j))
		}
	}

	return nil
}

// split takes the pause out of the block that holds it. All else stays as it was written,
// and the pause's own ends are written as that block's start is.
func split(blocks []Block, spans []flex.Span, pause flex.Span) []Block {
	out := make([]Block, 0, len(blocks)+1)
	for i, b := range blocks {
		if pause.Empty() || spans[i].Meet(pause) != pause {
			out = append(out, b)
			continue
		}

		if spans[i].From.Before(pause.From) {
			out = append(out, Block{b.Start, like(b.Start, pause.From)})
		}

		if pause.To.Before(spans[i].To) {
			out = append(out, Block{like(b.Start, pause.To), b.End})
		}
	}

	return out
}

// like writes an instant in the style of one that wire.ParseTime reads: the same sign
// between date and time, the same precision and the same offset. Seconds are added if
// they are needed.
func like(style string, t time.Time) string {
	const date, clock = len("2006-01-02"), len("15:04")

	read, err := wire.ParseTime(style)
	if err != nil {
		return t.UTC().Format(time.RFC3339)
	}

	t = t.UTC().Add(read.Offset)
	rest := style[date+1+clock:] // seconds, fraction, offset
	text := t.Format("2006-01-02") + style[date:date+1] + t.Format("15:04")

	seconds := strings.HasPrefix(rest, ":")
	if seconds {
		rest = rest[len(":05"):]
	}

	if seconds || t.Second() != 0 {
		text += t.Format(":05")
	}

	if n := len(rest) - len(strings.TrimLeft(rest, ".0123456789")); n > 0 { // a fraction of as many digits
		text, rest = text+"."+strings.Repeat("0", n-1), rest[n:]
	}

	return text + rest
}
