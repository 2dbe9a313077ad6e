package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/check"
	"flexd/internal/engine/pause"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Rules of limited_pause.
const (
	// BlocksMax is the number of blocks that a client's schedule may have.
	BlocksMax = 96
	// PauseMinSaving is the least saving of a pause at market prices: 2 p.
	PauseMinSaving flex.MicroPounds = 20_000
	// PauseInterval is the least time from the start of one pause of an asset to the next, so
	// that a plug-in has no second one when the client asks again.
	PauseInterval = 12 * time.Hour
)

// Block is one charging time in a client's own schedule.
type Block struct {
	flex.Span
	// its ends as the client wrote them, as they are stored with the event
	Start string
	End   string
}

// Part is a block of a client's schedule, or what a pause left of it.
type Part struct {
	Block int // the block's index in the schedule
	flex.Span
}

// PlugInSchedule puts one pause into the client's schedule. The pause is one settlement
// period, within one block, that has not begun yet; it is the one with the highest known
// market price.
//
// The schedule is returned unchanged if half an hour of charging or less is ahead, if the rest
// would not meet the energy that the asset's intent asks for, if no pause saves enough, if
// there was a pause within PauseInterval, or if an operator excluded the charger from control.
//
// Blocks may come in any order, and their parts are returned in the same order. Blocks may
// touch, but not overlap.
//
// The error is NotFound for an asset that is not a charger or is of another organisation,
// Forbidden for a site without consent to limited_pause, and Malformed for invalid blocks.
func (s *Service) PlugInSchedule(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
	blocks []Block,
) ([]Part, error) {
	spans, err := wholeSeconds(blocks)
	if err != nil {
		return nil, err
	}

	var parts []Part
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockAsset(ctx, asset); err != nil &&
			flex.KindOf(err) != flex.NotFound {
			return err
		}

		p, err := pausable(ctx, tx, asset)
		if err != nil {
			return err
		}

		answer, err := s.pause(ctx, tx, p, spans)
		if err != nil {
			return err
		}

		err = tx.AddEvent(ctx, asset, ownSchedule, store.AssetEvent{
			Blocks: storedBlocks(blocks),
			Pause:  &answer,
		})
		if err != nil {
			return err
		}

		parts = splitBlock(blocks, spans, answer.Span)
		err = tx.SetPause(ctx, p.Asset, answer.Span, answer.Saved, endOf(spans))
		tx.SetMadeRecord(parts)

		return err
	})

	return parts, err
}

// storedBlocks returns the blocks as they are stored with the event.
func storedBlocks(blocks []Block) []store.Block {
	stored := make([]store.Block, len(blocks))
	for i, b := range blocks {
		stored[i] = store.Block{Start: b.Start, End: b.End}
	}

	return stored
}

// pausable returns a charger into whose schedule a pause may be put.
func pausable(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (store.Pausable, error) {
	p, err := tx.Pausable(ctx, asset)
	if err != nil {
		return p, err
	}

	if p.Asset.Type != flex.Charger {
		return p, flex.Fail(
			flex.NotFound,
			"charger not found or not authorized",
		)
	}

	if !p.Consented {
		return p, flex.Fail(
			flex.Forbidden,
			"the site has not consented to %s: enrol it in %s first",
			flex.LimitedPauseMethod,
			flex.LimitedPause,
		)
	}

	return p, nil
}

// pause chooses the pause, or states why there is none.
func (s *Service) pause(
	ctx context.Context,
	tx *store.Tx,
	a store.Pausable,
	spans []flex.Span,
) (store.PauseAnswer, error) {
	if a.Excluded { // checked apart from consent, which is the user's decision
		return store.PauseAnswer{Why: store.PauseExcluded}, nil
	}

	if !a.Last.IsZero() && tx.Now().Sub(a.Last) < PauseInterval {
		return store.PauseAnswer{Why: store.PauseTooSoon}, nil
	}

	// Rounded up, as the blocks are cut to whole seconds too.
	now := tx.Now().Add(time.Second - 1).Truncate(time.Second)
	sorted := slices.Clone(spans)
	slices.SortFunc(sorted, func(a, b flex.Span) int {
		return a.From.Compare(b.From)
	})
	power := a.Asset.RatedPower()

	if !canPause(sorted, now, power, a.Need) {
		return store.PauseAnswer{Why: store.PauseNeeded}, nil
	}

	ps, err := prices(ctx, tx, tx.Now())
	p := pause.Problem{
		Blocks:    wholePeriods(sorted, knownUntil(ps)),
		Prices:    ps,
		Power:     power,
		Worth:     PauseMinSaving,
		NotBefore: nextPeriod(now),
	}

	return s.worthwhile(ctx, a.Asset.ID, p), err
}

// worthwhile returns the pause that saves the most, unless it saves too little.
func (s *Service) worthwhile(
	ctx context.Context,
	asset flex.AssetID,
	p pause.Problem,
) store.PauseAnswer {
	solution := pause.Solve(p)
	if err := check.Pause(p, solution); err != nil {
		s.log().ErrorContext(
			ctx,
			"a pause breaks a law and is not made",
			"asset",
			asset,
			"law",
			err,
		)

		return store.PauseAnswer{Why: store.PauseSavesTooLittle}
	}

	if solution.Pause.Empty() {
		return store.PauseAnswer{Why: store.PauseSavesTooLittle}
	}

	return store.PauseAnswer{
		Span:  solution.Pause,
		Saved: solution.Saved,
		Price: priceAt(p.Prices, solution.Pause.From),
	}
}

// priceAt returns the price of the half-hour that contains an instant; 0 if none is known.
func priceAt(prices []flex.PricedPeriod, at time.Time) flex.Price {
	i := slices.IndexFunc(prices, func(p flex.PricedPeriod) bool {
		return p.Known && p.Period == flex.PeriodAt(at)
	})
	if i < 0 {
		return 0
	}

	return prices[i].Price
}

// endOf returns when the last of the blocks ends.
func endOf(blocks []flex.Span) time.Time {
	var end time.Time
	for _, b := range blocks {
		if b.To.After(end) {
			end = b.To
		}
	}

	return end
}

// aheadMost is how far ahead charging is counted. A schedule may last for thousands of years,
// and the sum would overflow.
const aheadMost = 366 * 24 * time.Hour

// canPause reports whether a charge can do without one settlement period: some charging must
// remain, and enough for the energy that is known to be needed.
func canPause(
	blocks []flex.Span,
	now time.Time,
	power flex.Watts,
	need flex.WattHours,
) bool {
	ahead := -flex.HalfHour
	for _, b := range blocks {
		ahead += b.Meet(flex.Span{From: now, To: now.Add(aheadMost)}).Len()
	}
	remaining := flex.WattHours(int64(power) * int64(ahead/time.Second) / 3600)

	return ahead > 0 && remaining >= need
}

// knownUntil returns when consecutive prices end; the zero time if there are none.
func knownUntil(ps []flex.PricedPeriod) time.Time {
	if len(ps) == 0 {
		return time.Time{}
	}
	return ps[len(ps)-1].Period.End()
}

// wholePeriods cuts each block down to the settlement periods that lie completely within it,
// so that a pause is exactly one of them and can be settled. What comes after end is left out:
// each half-hour costs computing time, and a block may last for thousands of years.
func wholePeriods(blocks []flex.Span, end time.Time) []flex.Span {
	var whole []flex.Span
	for _, b := range blocks {
		b.From = nextPeriod(b.From)
		b.To = flex.PeriodAt(flex.Earlier(b.To, end)).Start()
		if b.From.Before(b.To) {
			whole = append(whole, b)
		}
	}

	return whole
}

// nextPeriod returns the start of the first settlement period that begins at t or later.
func nextPeriod(t time.Time) time.Time {
	p := flex.PeriodAt(t)
	if p.Start().Before(t) {
		p = p.Add(1)
	}

	return p.Start()
}

// wholeSeconds returns the blocks cut down to whole seconds. It refuses blocks that are empty
// or overlap.
func wholeSeconds(blocks []Block) ([]flex.Span, error) {
	if len(blocks) > BlocksMax {
		return nil, flex.Fail(
			flex.Malformed,
			"charging_schedule has %d blocks, more than %d",
			len(blocks),
			BlocksMax,
		)
	}

	spans := make([]flex.Span, len(blocks))
	order := make([]int, len(blocks))
	for i, b := range blocks {
		if !b.From.Before(b.To) {
			return nil, flex.Fail(
				flex.Malformed,
				"charging_schedule[%d] ends at %s, which is not after its start at %s",
				i,
				b.End,
				b.Start,
			)
		}

		spans[i] = flex.Span{
			From: b.From.Add(time.Second - 1).Truncate(time.Second),
			To:   b.To.Truncate(time.Second),
		}

		order[i] = i
	}

	return spans, checkNoOverlap(spans, order)
}

// checkNoOverlap refuses blocks that overlap. order has the index of each block; it is sorted
// here.
func checkNoOverlap(spans []flex.Span, order []int) error {
	slices.SortFunc(order, func(i, j int) int {
		return spans[i].From.Compare(spans[j].From)
	})

	for n := 1; n < len(order); n++ {
		if i, j := order[n-1], order[n]; spans[j].From.Before(spans[i].To) {
			return flex.Fail(
				flex.Malformed,
				"charging_schedule[%d] and [%d] overlap: join them, or have one end where the other starts",
				min(i, j),
				max(i, j),
			)
		}
	}

	return nil
}

// splitBlock cuts the pause out of the block that contains it. The other blocks stay whole.
func splitBlock(blocks []Block, spans []flex.Span, pause flex.Span) []Part {
	parts := make([]Part, 0, len(blocks)+1)
	for i, b := range blocks {
		if pause.Empty() || spans[i].Meet(pause) != pause {
			parts = append(parts, Part{i, b.Span})
			continue
		}

		if spans[i].From.Before(pause.From) {
			parts = append(parts, Part{
				i,
				flex.Span{From: b.From, To: pause.From},
			})
		}

		if pause.To.Before(spans[i].To) {
			parts = append(parts, Part{i, flex.Span{From: pause.To, To: b.To}})
		}
	}

	return parts
}

// ownSchedule is the kind of event with which a client sends its own schedule.
const ownSchedule = "plug_in_schedule"

// Pause returns the pause in a client's own schedule, empty if there was none, and whether the
// event recorded it.
func (e *PastEvent) Pause() (flex.Span, bool) {
	if e.Kind != ownSchedule || e.What.Pause == nil {
		return flex.Span{}, false
	}
	if e.What.Pause.Why != "" {
		return flex.Span{}, true
	}

	return e.What.Pause.Span, true
}

// PauseText says what pause was put into a client's own schedule, or why there was none. The
// text is the end of a sentence.
func (e *PastEvent) PauseText() string {
	p := e.What.Pause
	if p == nil {
		return " and asked for a pause in it"
	}

	switch p.Why {
	case store.PauseTooSoon:
		return fmt.Sprintf(
			"; nothing is paused, as the pause before began less than %d hours ago",
			PauseInterval/time.Hour,
		)

	case store.PauseNeeded:
		return "; nothing is paused, as all of it is needed"

	case store.PauseSavesTooLittle:
		return fmt.Sprintf(
			"; nothing is paused, as no half-hour in it saves %d p",
			PauseMinSaving.Pence(),
		)

	case store.PauseExcluded:
		return "; nothing is paused, as an operator excluded the charger from control"
	}

	from, to := flex.Clock(p.Span.From, flex.London, "15:04"), flex.Clock(
		p.Span.To,
		flex.London,
		"15:04",
	)

	return fmt.Sprintf(
		"; it is paused from %s to %s, when a MWh costs %s, which saves %d p",
		from,
		to,
		p.Price.Pounds(),
		p.Saved.Pence(),
	)
}
