package grid

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// ReplayedDays is how many past days of sessions are used to price moving them.
const ReplayedDays = 28

// Stack is what can be offered in a window: the higher the confidence, the less power.
type Stack struct {
	// what was asked for; with Power, Confidence and Price once one is chosen
	flex.Offer
	*Ahead
	Rungs []Rung // by confidence, rising; none with too few days
}

// Rung is a power that can be offered with a confidence.
type Rung struct {
	Confidence int
	Power      flex.Watts
	// of the last kW of it: the cost of moving past sessions at the window's prices
	Price flex.Price
}

// kindOf returns the kind of flexibility of an offer.
func kindOf(o *flex.Offer) forecast.Kind {
	if o.Up {
		return forecast.TurnUp
	}

	return forecast.TurnDown
}

// TooFew describes that there are too few days to learn from; empty if there are enough.
func (a *Ahead) TooFew() string {
	if len(a.Windows) > 0 {
		return ""
	}

	return fmt.Sprintf(
		"%s of plug sessions and planned home batteries are known, and a forecast needs %d up to two days before its day",
		flex.Count(a.Days, "day"),
		forecast.FewDays,
	)
}

// Reliability returns how past forecasts of the offered kind compared with what there was.
func (s *Stack) Reliability() forecast.Reliability {
	return s.Judged[kindOf(&s.Offer)]
}

// Stack returns what can be offered in a window of half-hours of today that has not begun, or
// of tomorrow. It fails as Ahead does; an invalid window is Malformed.
func (s *Service) Stack(
	ctx context.Context,
	org flex.OrgID,
	asked flex.Offer,
) (*Stack, error) {
	var k *Stack
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		k, err = s.stack(ctx, tx, asked)
		return err
	})

	return k, err
}

// MakeOffer stores an offer of a window with a confidence, with the power and price of Stack.
// It is a Conflict if nothing can be offered, and Malformed for a confidence that forecasts do
// not have.
func (s *Service) MakeOffer(
	ctx context.Context,
	org flex.OrgID,
	asked flex.Offer,
) (*Stack, error) {
	if !slices.Contains(forecast.Confidences[:], asked.Confidence) {
		return nil, flex.Fail(
			flex.Malformed,
			"a confidence is one of %v, and not %d",
			forecast.Confidences,
			asked.Confidence,
		)
	}

	// The stack reads half a year of sessions, so it is not made in the write transaction: on
	// SQLite all other writers would wait.
	k, err := s.Stack(ctx, org, asked)
	if err != nil {
		return nil, err
	}

	if err := k.choose(); err != nil {
		return nil, err
	}

	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		// The window may have begun meanwhile.
		if _, _, err := windowOf(&k.Offer, tx.Now()); err != nil {
			return err
		}

		err := tx.AddOffer(ctx, &k.Offer)
		tx.SetMadeRecord(k)

		return err
	})

	return k, err
}

// choose sets the power and price of the confidence that was asked for.
func (s *Stack) choose() error {
	if why := s.TooFew(); why != "" {
		return flex.Fail(flex.Conflict, "nothing can be offered: %s", why)
	}

	i := slices.IndexFunc(s.Rungs, func(r Rung) bool {
		return r.Confidence == s.Confidence
	})

	if i < 0 || s.Rungs[i].Power <= 0 {
		return flex.Fail(
			flex.Conflict,
			"nothing can be offered in this window with a confidence of %d %%",
			s.Confidence,
		)
	}

	s.Power, s.Price = s.Rungs[i].Power, s.Rungs[i].Price

	return nil
}

// stack is Stack within a transaction.
func (s *Service) stack(
	ctx context.Context,
	tx *store.Tx,
	asked flex.Offer,
) (*Stack, error) {
	day, length, err := windowOf(&asked, tx.Now())
	if err != nil {
		return nil, err
	}

	a, err := newAhead(tx.Now(), asked.Scope, day, length)
	if err != nil {
		return nil, err
	}

	again := &replay{
		day:    day,
		length: length,
		up:     asked.Up,
		since:  day.Add(-ReplayedDays).Start(),
	}

	again.window = forecast.SlotOf(flex.PeriodAt(asked.From))
	if err := again.readPrices(ctx, tx); err != nil {
		return nil, err
	}

	if err := a.learn(ctx, tx, again); err != nil {
		return nil, err
	}

	if err := s.priceDevices(ctx, tx, again, &asked); err != nil {
		return nil, err
	}

	k := &Stack{Offer: asked, Ahead: a}
	k.fill(again)

	return k, nil
}

// priceDevices adds what batteries, tanks and heat pumps would move now for an instruction of
// the window, counted once for each replayed day.
func (s *Service) priceDevices(
	ctx context.Context,
	tx *store.Tx,
	again *replay,
	asked *flex.Offer,
) error {
	if s.DeviceMoves == nil {
		return nil
	}

	in := flex.Instruction{
		Span:    asked.Span,
		Scope:   asked.Scope,
		Service: asked.Service,
		Change:  -1,
	}

	if asked.Up {
		in.Change = 1
	}

	moves, err := s.DeviceMoves(ctx, tx, &in)
	days := float64(max(1, len(again.days)))
	for _, m := range moves {
		m.KWh *= days
		m.Cost *= days
		again.moved = append(again.moved, m)
	}

	return err
}

// windowOf returns the day and the length of an offer's window. An invalid window is
// Malformed.
func windowOf(
	o *flex.Offer,
	now time.Time,
) (flex.Day, int, error) {
	day := flex.DayAt(o.From)
	length := int(o.Len() / flex.HalfHour)
	whole := flex.PeriodAt(o.From).Start().Equal(o.From) &&
		flex.PeriodAt(o.To).Start().Equal(o.To)
	if !whole || length < 1 {
		return day, length, flex.Fail(
			flex.Malformed,
			"a window begins and ends at half-hours, and ends after it begins",
		)
	}

	if o.To.After(day.Add(1).Start()) {
		return day, length, flex.Fail(
			flex.Malformed,
			"a window is within a day in London",
		)
	}

	if o.From.Before(now) {
		return day, length, flex.Fail(flex.Malformed, "the window has begun")
	}

	return day, length, nil
}

// fill sets the rungs from the forecast.
func (s *Stack) fill(again *replay) {
	i := slices.IndexFunc(s.Windows, func(w AheadWindow) bool {
		return w.From.Equal(s.Offer.From)
	})

	if i < 0 {
		return
	}

	kw := s.Windows[i].KW[kindOf(&s.Offer)]
	mean := max(again.meanKW(), kw[0])
	for c, confidence := range forecast.Confidences {
		r := Rung{
			Confidence: confidence,
			Power:      flex.Watts(kw[c] * 1000),
		}

		if r.Power > 0 {
			r.Price = flex.FromGBPPerMWh(forecast.Marginal(again.moved, kw[c]/mean))
		}

		s.Rungs = append(s.Rungs, r)
	}
}

// OfferLine is an offer with its result.
type OfferLine struct {
	flex.Offer
	Over   bool
	Actual flex.Watts // that could have been moved, once the day is over
	// what is settled of the instruction that it became, if that pays something
	Settled flex.InstructedEvents
}

// Met reports whether at least the offered power could have been moved.
func (l *OfferLine) Met() bool { return l.Over && l.Actual >= l.Power }

// OfferPage is a page of offers, the newest first.
type OfferPage struct {
	At          time.Time
	Offers      []OfferLine
	Total       int
	Judged, Met int // of this page
	Next        flex.OfferID
}

// Offers returns at most limit of the organisation's offers, newest first; if before is given,
// those made before that one.
func (s *Service) Offers(
	ctx context.Context,
	org flex.OrgID,
	before flex.OfferID,
	limit int,
) (*OfferPage, error) {
	p := &OfferPage{}
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		*p = OfferPage{At: tx.Now()}
		found, total, err := tx.Offers(ctx, before, limit+1)
		if err != nil {
			return err
		}

		p.Total = total
		if len(found) > limit {
			found = found[:limit]
			p.Next = found[limit-1].ID
		}

		for _, o := range found {
			if err := p.add(ctx, tx, o); err != nil {
				return err
			}
		}

		return nil
	})

	return p, err
}

// add adds an offer with its result.
func (p *OfferPage) add(
	ctx context.Context,
	tx *store.Tx,
	o flex.Offer,
) error {
	line := OfferLine{
		Offer: o,
		Over:  !p.At.Before(flex.DayAt(o.From).Add(1).Start()),
	}

	var err error
	if line.Over {
		line.Actual, err = couldMove(ctx, tx, &o)
		if err != nil {
			return err
		}

		p.Judged++
	}

	if line.Met() {
		p.Met++
	}

	if !o.Instruction.IsZero() {
		line.Settled, err = tx.InstructedEvents(ctx, o.Instruction)
		if err != nil {
			return err
		}
	}

	p.Offers = append(p.Offers, line)

	return nil
}

// couldMove returns the power that could have been moved in an offer's window, by the sessions
// and plans that there were.
func couldMove(
	ctx context.Context,
	tx *store.Tx,
	o *flex.Offer,
) (flex.Watts, error) {
	day, length := flex.DayAt(o.From), int(o.Len()/flex.HalfHour)
	first := day.Start().Add(-farthest)
	l := &learning{
		a:       &Ahead{},
		until:   day.Add(1),
		begun:   first.Unix(),
		offPeak: map[flex.Tariff][]secondSpan{},
		history: forecast.NewFleetHistory(day, 1, length),
	}

	err := tx.EachStay(
		ctx,
		o.Scope,
		flex.Span{From: first, To: day.Add(1).Start()},
		l.add,
	)
	if err == nil {
		err = l.readDevices(ctx, tx, o.Scope, day.Span(), true)
	}
	if err != nil {
		return 0, err
	}

	kw := l.history.Came(kindOf(o), day)

	return flex.Watts(math.Round(kw[forecast.SlotOf(flex.PeriodAt(o.From))] * 1000)), nil
}

// Offer returns one of the organisation's offers.
func (s *Service) Offer(
	ctx context.Context,
	org flex.OrgID,
	id flex.OfferID,
) (flex.Offer, error) {
	var o flex.Offer
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		o, err = tx.Offer(ctx, id)
		return err
	})

	return o, err
}

// Accepted returns the instruction for a power of an offer that is accepted; for all of it if
// power is zero. More than was offered is Malformed.
func Accepted(
	o *flex.Offer,
	power flex.Watts,
	reason, who string,
) (flex.Instruction, error) {
	if power == 0 {
		power = o.Power
	}

	var in flex.Instruction
	if power < 0 || power > o.Power {
		return in, flex.Fail(
			flex.Malformed,
			"%g kW were offered, and not %g",
			o.Power.KW(),
			power.KW(),
		)
	}

	if !o.Up {
		power = -power
	}

	return flex.Instruction{
		Span:    o.Span,
		Change:  power,
		Scope:   o.Scope,
		Service: o.Service,
		Price:   o.Price,
		Reason:  reason,
		Who:     who,
		Offer:   o.ID,
	}, nil
}

// WriteCSV writes the stack as CSV: a row for each confidence.
func (s *Stack) WriteCSV(out io.Writer) error {
	w := csvfile.NewWriter(
		out,
		"service",
		"direction",
		"start_timestamp",
		"end_timestamp",
		"group",
		"gsp_group",
		"confidence",
		"power_mw",
		"price_gbp_per_mwh",
	)

	for _, r := range s.Rungs {
		w.Write(
			s.Service,
			Direction(s.Up),
			s.Offer.From,
			s.Offer.To,
			s.Offer.Scope.Group,
			s.Offer.Scope.GSPGroup,
			r.Confidence,
			r.Power.KW()/1000,
			r.Price.GBPPerMWh(),
		)
	}

	return w.Flush()
}

// WriteCSV writes the offers as CSV.
func (p *OfferPage) WriteCSV(out io.Writer) error {
	w := csvfile.NewWriter(
		out,
		"id",
		"service",
		"direction",
		"start_timestamp",
		"end_timestamp",
		"group",
		"gsp_group",
		"confidence",
		"power_kw",
		"price_gbp_per_mwh",
		"made_at",
		"who",
		"accepted_at",
		"accepted_kw",
		"instruction_id",
		"came_kw",
	)

	for _, o := range p.Offers {
		var accepted, became, came any
		if !o.AcceptedAt.IsZero() {
			accepted, became = o.Accepted.KW(), o.Instruction.String()
		}

		if o.Over {
			came = o.Actual.KW()
		}

		w.Write(
			o.ID.String(),
			o.Service,
			Direction(o.Up),
			o.From,
			o.To,
			o.Scope.Group,
			o.Scope.GSPGroup,
			o.Confidence,
			o.Power.KW(),
			o.Price.GBPPerMWh(),
			o.MadeAt,
			o.Who,
			o.AcceptedAt,
			accepted,
			became,
			came,
		)
	}

	return w.Flush()
}

// Direction returns "up" for an offer to draw more, and "down" for less.
func Direction(up bool) string {
	if up {
		return "up"
	}

	return "down"
}
