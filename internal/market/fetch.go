package market

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// AskEvery is the least time between two requests of FetchPrices to the same source.
const AskEvery = 5 * time.Minute

// askAfterDay is how long after the end of an EFA day FetchPrices still asks for its prices: those of its
// last half-hours are published after it, and so are the first revisions of imbalance prices.
const askAfterDay = 6 * time.Hour

// Report is what a fetch brought in.
type Report struct {
	Prices    int        // half-hours with a price
	Rejected  []Rejected // rejected rows, by reason
	Published int        // publications made
}

// Fetch asks the source for the prices of a span, in pieces as long as the source allows, and publishes
// those that differ from what it said before, in one publication for each EFA day. It calls progress, if
// that is not nil, after each piece. What was fetched before a failure is stored, and rows that were
// rejected are reported.
func (s *Service) Fetch(
	ctx context.Context,
	source Source,
	span flex.Span,
	progress func(done, total time.Duration),
) (Report, error) {
	r, err := s.fetchPieces(ctx, source, span, progress)
	if err != nil && len(r.Rejected) == 0 { // no complete answer: the earlier report stays
		return r, err
	}

	return r, errors.Join(err, s.noteRejected(ctx, source.Name(), r.Rejected))
}

// maxFailuresInRow is after how many failed pieces in a row a source is not asked for the others.
const maxFailuresInRow = 2

// fetchPieces fetches and publishes the prices of a span piece by piece. It continues after a piece that
// failed: the next day's prices do not wait for those of a day for which the source has no answer.
func (s *Service) fetchPieces(
	ctx context.Context,
	source Source,
	span flex.Span,
	progress func(done, total time.Duration),
) (Report, error) {
	var r Report
	var failed error
	inRow := 0
	for at := span.From; at.Before(span.To); {
		piece := flex.Span{From: at, To: at.Add(source.Longest())}.Meet(span)
		at = piece.To

		err := s.fetchPiece(ctx, source, piece, &r)
		failed = errors.Join(failed, err)
		inRow++
		if err == nil {
			inRow = 0
		}

		if inRow == maxFailuresInRow || err != nil && isDown(ctx, err) {
			break
		}
		if err == nil && progress != nil {
			progress(at.Sub(span.From), span.Len())
		}
	}

	return r, failed
}

// isDown reports whether a failure concerns all pieces: the source or the database cannot be reached, or the
// context has ended.
func isDown(ctx context.Context, err error) bool {
	_, unreachable := errors.AsType[*egress.Error](err)
	return unreachable || flex.KindOf(err) == flex.Unavailable || ctx.Err() != nil
}

// fetchPiece fetches and publishes the prices of one piece, and counts them.
func (s *Service) fetchPiece(
	ctx context.Context,
	source Source,
	piece flex.Span,
	r *Report,
) error {
	asked := s.DB.Now()
	got, err := source.Fetch(ctx, piece)
	if err != nil {
		return err
	}

	r.Prices += len(got.Prices)
	r.keepOut(got.Rejected)
	published, err := s.publishAll(ctx, source.Name(), got, asked)
	r.Published += published

	return err
}

// keepOut adds the rejected rows of a piece.
func (r *Report) keepOut(more []Rejected) {
	for _, k := range more {
		i := slices.IndexFunc(r.Rejected, func(old Rejected) bool {
			return old.Reason == k.Reason
		})
		if i < 0 {
			r.Rejected = append(r.Rejected, k)
			continue
		}

		r.Rejected[i].Rows += k.Rows
	}
}

// noteRejected logs rejected rows as errors, and stores them until an answer of the source has none.
func (s *Service) noteRejected(
	ctx context.Context,
	source string,
	out []Rejected,
) error {
	rows := make([]store.RejectedPrice, len(out))
	for i, k := range out {
		s.log().ErrorContext(
			ctx,
			"prices were kept out",
			"source",
			source,
			"reason",
			k.Reason,
			"rows",
			k.Rows,
			"from",
			k.First,
		)

		rows[i] = store.RejectedPrice{
			Source: source,
			Reason: k.Reason,
			Rows:   k.Rows,
			First:  k.First,
		}
	}

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.SetRejectedPrices(ctx, source, rows)
	})
}

// publishAll publishes a source's prices by EFA day, preliminary ones separately from final ones. It returns
// how many publications it made.
func (s *Service) publishAll(
	ctx context.Context,
	source string,
	got Fetched,
	asked time.Time,
) (int, error) {
	var published int
	for prices := got.Prices; len(prices) > 0; {
		day, preliminary := flex.EFADayAt(prices[0].Period.Start()), got.Preliminary[prices[0].Period]
		n := slices.IndexFunc(prices, func(p flex.PricedPeriod) bool {
			return !day.Span().Contains(p.Period.Start()) ||
				got.Preliminary[p.Period] != preliminary
		})
		if n < 0 {
			n = len(prices)
		}

		made, err := s.publish(
			ctx,
			store.Publication{Source: source, Preliminary: preliminary},
			day,
			prices[:n],
			asked,
		)
		if err != nil {
			return published, fmt.Errorf(
				"store the prices of %s: %w",
				day,
				err,
			)
		}

		if made {
			published++
		}

		prices = prices[n:]
	}

	return published, nil
}

// publish stores prices of one EFA day as a publication, if they differ from what the source said before
// or are final for the first time. knownAt decides from when on it counts as known. An answer is dropped if
// another process has published prices of its half-hours since the source was asked: which answer is newer
// is not known, and the source is soon asked again.
func (s *Service) publish(
	ctx context.Context,
	p store.Publication,
	day flex.EFADay,
	prices []flex.PricedPeriod,
	asked time.Time,
) (made bool, err error) {
	p.Span = flex.Span{
		From: prices[0].Period.Start(),
		To:   prices[len(prices)-1].Period.End(),
	}

	err = s.DB.WriteAll(ctx, func(all *store.All) error {
		made = false

		published, err := all.PublishedSince(ctx, p.Source, p.Span, asked)
		if err != nil || published {
			return err
		}

		before, err := all.QuotesFrom(ctx, p.Source, p.Span)
		if err != nil {
			return err
		}

		if !saysMore(prices, before, p.Preliminary) {
			return nil
		}

		p.PublishedAt, err = s.knownAt(ctx, all, p, day)
		if err != nil {
			return err
		}

		made = true
		_, err = all.AddPublication(ctx, p, prices)
		return err
	})

	return made, err
}

// saysMore reports whether prices differ from what the source said before, or are final where it was not.
func saysMore(prices []flex.PricedPeriod, before []flex.Quote, preliminary bool) bool {
	return slices.ContainsFunc(prices, func(q flex.PricedPeriod) bool {
		old := before[q.Period.Sub(before[0].Period)]
		return q != old.PricedPeriod || old.Preliminary && !preliminary
	})
}

// knownAt returns from when on a publication of prices of an EFA day counts as known: from the hour at which
// the day's prices come out or, if that is past, from now. The prices of a day that is over count as if they
// had come out on time, but not before an earlier publication of the source for the same time.
func (s *Service) knownAt(
	ctx context.Context,
	all *store.All,
	p store.Publication,
	day flex.EFADay,
) (time.Time, error) {
	out := s.publishTime(day)
	if day.Span().To.After(all.Now()) {
		return flex.Later(out, all.Now()), nil
	}

	// Of two publications the one that is known later counts, so a revision must not be known before the
	// publication that it revises.
	before, err := all.LatestPublished(ctx, p.Source, p.Span)

	return flex.Later(out, before), err
}

// FetchPrices asks every source for today's and tomorrow's prices, for some hours also for those of the day
// before, and for carbon intensity. A cell other than home first copies home's publications. A source that
// fails is reported and asked again later; what it said before stays.
func (s *Service) FetchPrices(ctx context.Context) (worker.Report, error) {
	if s.SharedPrices == nil {
		return s.askSources(ctx)
	}

	if err := s.inventAhead(ctx); err != nil {
		return worker.Report{}, err
	}

	copied, err := s.copyHome(ctx)
	if err != nil {
		return worker.Report{}, err
	}

	r, err := s.askSources(ctx)
	r.Count += copied

	return r, err
}

// copyTries is how often copying home's publications is tried when another process copies them at the same
// time.
const copyTries = 3

// copyHome copies home's publications to this cell, and returns how many.
func (s *Service) copyHome(ctx context.Context) (int, error) {
	var n int
	var err error
	for range copyTries {
		n, err = s.DB.CopyPublications(ctx, s.SharedPrices)
		if flex.KindOf(err) != flex.Conflict {
			break
		}
	}

	return n, err
}

func (s *Service) askSources(ctx context.Context) (worker.Report, error) {
	now := s.DB.Now()
	span := flex.Span{
		From: flex.EFADayAt(now.Add(-askAfterDay)).Span().From,
		To:   flex.EFADayAt(now).Add(1).Span().To,
	}

	var r worker.Report
	var failed []string

	for _, source := range s.Sources {
		if !s.due(source.Name(), now) {
			continue
		}

		got, err := s.Fetch(ctx, source, span, nil)
		r.Count += got.Published

		s.noteFailure(ctx, source.Name(), now, err)
		if err != nil {
			failed = append(failed, source.Name())
		}
	}

	if s.Invent && s.SharedPrices == nil {
		made, err := s.invent(ctx)
		if err != nil {
			return r, err
		}
		r.Count += made
	}

	if s.Carbon != nil && s.due("carbon", now) {
		if err := s.fetchCarbon(ctx, span); err != nil {
			failed = append(failed, "carbon")
			s.log().ErrorContext(
				ctx,
				"the source of carbon intensity failed",
				"error",
				err,
			)
		}
	}

	if len(failed) > 0 {
		r.Note = "failed: " + strings.Join(failed, ", ")
	}

	return r, ctx.Err()
}

func (s *Service) fetchCarbon(ctx context.Context, span flex.Span) error {
	cs, err := s.Carbon.Fetch(ctx, span)
	if err != nil {
		return err
	}

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.PutCarbon(ctx, cs)
	})
}

// due reports whether a source may be asked again, and if so records that it is asked now.
func (s *Service) due(source string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	last, asked := s.askedAt[source]
	if asked && now.Sub(last) < AskEvery && !now.Before(last) {
		return false
	}

	if s.askedAt == nil {
		s.askedAt = map[string]time.Time{}
	}

	s.askedAt[source] = now

	return true
}

// Grace is how late the next day's prices may be before the source counts as stale.
const Grace = time.Hour

// ImbalanceGrace is how long after a half-hour its imbalance price or index may come before the source counts
// as stale. These prices are never published ahead.
const ImbalanceGrace = 6 * time.Hour

// Freshness says how current a source is.
type Freshness struct {
	Source    string
	FetchedAt time.Time // its newest publication; zero if there is none
	// the end of the last half-hour that it has a price for
	Through time.Time
	Stale   string // what is missing; empty if nothing is
	// how the source failed, and when, if it failed when this process last asked it
	Failure  string
	FailedAt time.Time
	Rejected []RejectedRows // of the source's latest answer
}

// RejectedRows are rows of a source's latest answer that were rejected, for one reason.
type RejectedRows struct {
	Source    string
	Reason    string
	Rows      int
	First     time.Time // the start of the first of them
	FetchedAt time.Time
}

// Freshness returns the state of every source that has ever published and of every one that FetchPrices
// asks.
func (s *Service) Freshness(ctx context.Context) ([]Freshness, error) {
	var states []store.SourceState
	var keptOut []store.RejectedPrice
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		states, err = all.SourceStates(ctx)
		if err != nil {
			return err
		}

		keptOut, err = all.RejectedPrices(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}

	for _, source := range s.Sources {
		if !slices.ContainsFunc(states, func(st store.SourceState) bool {
			return st.Source == source.Name()
		}) {
			states = append(states, store.SourceState{Source: source.Name()})
		}
	}

	out := make([]Freshness, len(states))
	for i, source := range states {
		out[i] = s.freshnessOf(source)

		for _, k := range keptOut {
			if k.Source == source.Source {
				out[i].Rejected = append(out[i].Rejected, RejectedRows(k))
			}
		}
	}

	return out, nil
}

// freshnessOf returns the state of a source by the true clock, with its failure when this process last asked
// it.
func (s *Service) freshnessOf(source store.SourceState) Freshness {
	failed := s.failureOf(source.Source)

	return Freshness{
		Source:    source.Source,
		FetchedAt: source.FetchedAt,
		Through:   source.Through,
		Stale:     s.stale(source, s.DB.Now()),
		Failure:   failed.text,
		FailedAt:  failed.at,
	}
}

// stale says what is missing of a source's prices at an instant; empty if nothing is.
func (s *Service) stale(source store.SourceState, now time.Time) string {
	next := flex.EFADay(flex.DayAt(now)).Add(1)
	if source.Through.IsZero() {
		return "it has never given a price"
	}

	// Imbalance prices and indexes of trades close to delivery come with the half-hour or after it, so future
	// ones are not missing.
	kind := pricing.KindOf(source.Source)
	late := kind == pricing.Imbalance || kind == pricing.Index
	if late && now.Sub(source.Through) <= ImbalanceGrace {
		return ""
	}

	if !source.Through.After(now) {
		return fmt.Sprintf(
			"its prices ended at %s",
			source.Through.Format(time.RFC3339),
		)
	}

	if !now.Before(s.publishTime(next).Add(Grace)) && source.Through.Before(next.Span().To) {
		return fmt.Sprintf(
			"the prices of %s were due at %s",
			next,
			s.publishTime(next).Format(time.RFC3339),
		)
	}

	return ""
}
