package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Planned returns what the background jobs have done since this process began: assets that
// were planned again without an event, and schedules that replaced one. For the others the
// plan was the same, or better by less than the thresholds.
func (s *Service) Planned() (planned, changed int64) {
	return s.planned.Load(), s.changed.Load()
}

// Sampled is a plan that was made again to measure the planner.
type Sampled struct {
	Asset     flex.AssetID
	Took      time.Duration // of the planner alone
	Energy    flex.WattHours
	Shortfall flex.WattHours
	Cost      flex.MicroPounds
	Gap       flex.MicroPounds // between the cost and the proven least
}

// SampleMax is the greatest number of plans in a sample.
const SampleMax = 500

// Sample makes plans of plugged-in assets again, from their inputs, and stores nothing. There
// are fewer than n if fewer are plugged in.
func (s *Service) Sample(
	ctx context.Context,
	org flex.OrgID,
	n int,
) ([]Sampled, error) {
	var sampled []Sampled
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		sampled, err = sample(ctx, tx, n)
		return err
	})

	return sampled, err
}

// sample is Sample within a transaction.
func sample(
	ctx context.Context,
	tx *store.Tx,
	n int,
) ([]Sampled, error) {
	found, err := tx.PlannedAfter(ctx, flex.AssetID{}, min(n, SampleMax))
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}

	from := tx.Now().Truncate(time.Second)
	ps, err := prices(ctx, tx, from)
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}

	var sampled []Sampled
	for i := range found {
		s := &found[i].Current
		if !s.From.ReadyBy.After(from) {
			continue
		}

		problem := problemOf(s.From, from, ps)
		start := time.Now()
		p := charge.Solve(problem)
		sampled = append(sampled, Sampled{
			s.AssetID,
			time.Since(start),
			p.Energy,
			p.Shortfall,
			p.Cost,
			p.Cost - p.LowerBound,
		})
	}

	return sampled, nil
}

// Foreseen is what prices would change in an organisation's fleet.
type Foreseen struct {
	Planned int              // assets that are plugged in and planned
	Changed int              // schedules that would be made and pushed
	Failed  int              // assets of those that could not be read or planned, for which nothing is foreseen
	Saving  flex.MicroPounds // of the changes that only save money
}

// foreseenChunk is the number of assets that are read at a time.
const foreseenChunk = 2000

// Foresee returns how many schedules would change if the prices were published now, replacing
// those that are known for the same half-hours. It stores and sends nothing. An asset that cannot
// be read or planned is counted as failed, and delays no other.
func (s *Service) Foresee(
	ctx context.Context,
	org flex.OrgID,
	supposed []flex.PricedPeriod,
) (Foreseen, error) {
	var solver charge.Solver
	var f Foreseen
	for after, more := (flex.AssetID{}), true; more; {
		found, m, err := s.plannedAfter(ctx, org, after)
		if err != nil {
			return f, fmt.Errorf("read the fleet: %w", err)
		}

		m.prices = supposing(m.prices, supposed, m.now)
		for i := range found {
			found[i].MarketAt = time.Time{} // so that MarketInterval does not count
			f.Planned++
			if found[i].Current.From.Discharge != nil {
				continue // its discharge is not compared here
			}

			v, err := s.tryToForesee(ctx, &found[i], m, &solver)
			if err != nil {
				s.log().ErrorContext(ctx, "an asset cannot be foreseen", "asset", found[i].Current.AssetID, "err", err)
				solver = charge.Solver{} // a panic may have left it inconsistent
			}
			f.add(&v, err)
		}

		more = len(found) == foreseenChunk
		if more {
			after = found[len(found)-1].Current.AssetID
		}
	}

	return f, nil
}

// add counts what is foreseen of an asset, or that it failed.
func (f *Foreseen) add(v *planChange, err error) {
	if err != nil {
		f.Failed++
		return
	}
	if v.next.ScheduledAsset == nil {
		return
	}

	f.Changed++
	if v.next.Next.Value < store.Urgent {
		f.Saving += v.next.Next.Value
	}
}

// tryToForesee is foresee with a panic, or a schedule that cannot be read, returned as an error.
func (s *Service) tryToForesee(
	ctx context.Context,
	p *store.ScheduledAsset,
	m market,
	solver *charge.Solver,
) (v planChange, err error) {
	defer flex.Recover(&err)

	if p.Unread != nil {
		return v, p.Unread
	}

	v = s.foresee(ctx, p, m, solver)

	return v, nil
}

// foresee is compareOne for any asset. Behind a main fuse the asset is planned in the headroom
// that the others leave, which do what was foreseen for them.
func (s *Service) foresee(
	ctx context.Context,
	p *store.ScheduledAsset,
	m market,
	solver *charge.Solver,
) planChange {
	site := m.sites[p.Current.AssetID]
	if site == nil {
		return s.compareOne(ctx, p, m, solver)
	}

	car := site.carByAsset(p.Current.AssetID)
	if car.pastReadyBy {
		return planChange{}
	}

	e := inputsAt(p, site.from)
	limitToLearned(&e, true)
	raiseToMinPower(&e)
	car.from = e
	problem := problemOf(e, site.from, m.prices)
	problem.Exact = true
	plan := charge.Solve(problem)
	site.fitToFuse(car, &problem, &plan, nil)

	decision := s.decide(ctx, p.Current.AssetID, &Candidate{
		Trigger: ByMarket,
		Now:     m.now,
		Current: p.Current.Charging(),
		Problem: &problem,
		Plan:    &plan,
	})
	if !decision.Replace {
		car.keepSchedule(site.from)
		car.stepsForNow = car.finalSteps
		return planChange{}
	}

	v := planChange{next: store.Replacement{ScheduledAsset: p}}
	v.next.Next.Value = decision.Value

	return v
}

// plannedAfter reads assets with a schedule after one, in the order of their ids, and the
// market. It includes those whose schedules cannot be read.
func (s *Service) plannedAfter(
	ctx context.Context,
	org flex.OrgID,
	after flex.AssetID,
) ([]store.ScheduledAsset, market, error) {
	var (
		found []store.ScheduledAsset
		m     market
	)

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		m.now = tx.Now()

		var err error
		found, err = tx.PlannedEachAfter(ctx, after, foreseenChunk)
		if err != nil {
			return err
		}

		m.prices, err = prices(ctx, tx, m.now)
		if err != nil {
			return err
		}

		m.sites, err = fusedSitesOf(ctx, tx, found)
		return err
	})

	return found, m, err
}

// supposing replaces known prices by supposed ones, from the running half-hour on, without
// gaps.
func supposing(
	known, supposed []flex.PricedPeriod,
	now time.Time,
) []flex.PricedPeriod {
	first := flex.PeriodAt(now)

	out := make([]flex.PricedPeriod, int(planHorizon/flex.HalfHour))
	for i := range out {
		out[i].Period = first.Add(i)
	}

	last := 0

	for _, list := range [][]flex.PricedPeriod{known, supposed} {
		for _, p := range list {
			if i := p.Period.Sub(first); i >= 0 && i < len(out) {
				out[i] = p
			}
		}
	}

	for i, p := range out {
		if p.Known {
			last = i + 1
		}
	}

	return out[:last]
}
