package reward

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// BaselineTrial says on what past the baselines are tried.
type BaselineTrial struct {
	From, To    flex.Day // both included
	First, Last int      // settlement periods of each day
}

// TrialDaysMax is the number of days that baselines are tried on at a time.
const TrialDaysMax = 400

// TriedMethod is a method of finding baselines and how well it met the days.
type TriedMethod struct {
	Name string
	settle.Accuracy
}

// TryAll tries every method on one meter.
func TryAll(t *settle.Trial) []TriedMethod {
	rules := []struct {
		name string
		rule settle.Rule
	}{{"mean", settle.DefaultRule}, {"mean, in_day", settle.DefaultRule}, {"mid_8_of_10", settle.DefaultRule}, {"nominated", settle.DefaultRule}}

	rules[1].rule.InDay = true
	rules[2].rule.Method = settle.MiddleEight
	rules[3].rule.Method = settle.Nominated
	tried := make([]TriedMethod, len(rules))

	for i, r := range rules {
		tried[i] = TriedMethod{r.name, t.Try(r.rule)}
	}

	return tried
}

// TryBaselines tries every method on the organisation's sites, by their boundary meters, on
// days without a flex event.
func (s *Service) TryBaselines(
	ctx context.Context,
	org flex.OrgID,
	t BaselineTrial,
) ([]TriedMethod, error) {
	if n := len(daysBetween(t.From, t.To)); n > TrialDaysMax {
		return nil, flex.Fail(
			flex.Invalid,
			"baselines are tried on up to %d days at a time, not on %d",
			TrialDaysMax,
			n,
		)
	}

	all := TryAll(&settle.Trial{})

	for last, more := (flex.SiteID{}), true; more; {
		var sites []flex.SiteID
		err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
			var err error
			sites, err = tx.SiteIDs(ctx, last, trialPage)
			return err
		})
		if err != nil {
			return nil, err
		}

		for _, site := range sites {
			if err := s.trySite(ctx, org, site, t, all); err != nil {
				return nil, err
			}
			last = site
		}

		more = len(sites) == trialPage
	}

	return all, nil
}

// trialPage is the number of sites that are looked up at a time.
const trialPage = 1000

// trySite adds what the methods come to at one site.
func (s *Service) trySite(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	t BaselineTrial,
	all []TriedMethod,
) error {
	var one *settle.Trial
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		one, err = siteTrial(ctx, tx, site, t)
		return err
	})
	if err != nil {
		return err
	}

	for i, tried := range TryAll(one) {
		all[i].Add(tried.Accuracy)
	}

	return nil
}

// siteTrial reads a site's past.
func siteTrial(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	t BaselineTrial,
) (*settle.Trial, error) {
	trial := &settle.Trial{
		Metering: settle.Boundary,
		From:     t.From,
		To:       t.To,
		First:    t.First,
		Last:     t.Last,
	}

	oldest := t.From.Add(-settle.DefaultRule.LookBack)
	days, err := tx.EventDaysAt(
		ctx,
		[]flex.SiteID{site},
		oldest,
		t.To,
		tx.Now(),
	)
	if err != nil {
		return nil, err
	}

	trial.EventDays = days[site]

	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return nil, err
	}

	ids := idsOf(assets)
	all := daysBetween(oldest, t.To)

	trial.Metered, err = consentedDays(ctx, tx, site, ids, all)
	if err != nil || len(trial.Metered) == 0 {
		return trial, err
	}

	return trial, withCars(ctx, tx, trial, assets, all)
}

func idsOf(assets []flex.Asset) []flex.AssetID {
	ids := make([]flex.AssetID, len(assets))
	for i, a := range assets {
		ids[i] = a.ID
	}

	return ids
}

// withCars tells the trial what the site's cars used, and what the baseline takes of their
// plans.
func withCars(
	ctx context.Context,
	tx *store.Tx,
	trial *settle.Trial,
	assets []flex.Asset,
	days []flex.Day,
) error {
	var used [][]settle.MeteredDay
	for _, a := range assets {
		if a.Type != flex.Charger && a.Type != flex.ElectricVehicle {
			continue
		}

		rs, err := tx.Readings(ctx, store.ReadingQuery{
			Assets: []flex.AssetID{a.ID},
			Labels: settle.Labels(settle.Asset),
			Days:   days,
		})
		if err != nil {
			return err
		}

		own := settle.HalfHours(settle.Asset, rs)

		stays, err := staysOf(ctx, tx, a.ID, flex.Span{
			From: days[0].Start(),
			To:   days[len(days)-1].Add(1).Start(),
		})
		if err != nil {
			return err
		}

		used = append(used, settle.Used(own, stays, days))
		trial.Shown = addDays(trial.Shown, shownOf(&a, own, stays))
	}

	trial.Home = settle.Without(trial.Metered, used...)

	return nil
}

// staysOf returns when an asset was plugged in, in a span.
func staysOf(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	span flex.Span,
) ([]flex.Span, error) {
	sessions, err := tx.SessionsWithin(ctx, asset, span)
	var stays []flex.Span
	for _, s := range sessions {
		stay := flex.Span{From: s.PluggedInAt, To: s.PluggedOutAt}
		if stay.To.IsZero() {
			stay.To = tx.Now()
		}
		stays = append(stays, stay)
	}

	return stays, err
}

// shownOf returns what the nominated baseline takes of an asset's plans where nothing steered
// it: full power from the plug-in on, as far as the stay shows that it could.
func shownOf(
	a *flex.Asset,
	own []settle.MeteredDay,
	stays []flex.Span,
) []settle.MeteredDay {
	power := a.RatedPower()
	var shown []settle.MeteredDay
	for _, span := range stays {
		stay := settle.Stay{Span: span}
		stay.Meter(own)
		stay.Plan = stay.At(power)
		shown = addDays(shown, stay.Days(stay.Shown()))
	}

	return shown
}

// consentedDays returns the half-hours of a site's boundary that may be used.
func consentedDays(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	ids []flex.AssetID,
	days []flex.Day,
) ([]settle.MeteredDay, error) {
	rs, err := tx.Readings(ctx, store.ReadingQuery{
		Assets: ids,
		Labels: settle.Labels(settle.Boundary),
		Days:   days,
	})
	if err != nil || len(rs) == 0 {
		return nil, err
	}

	consent, err := tx.ConsentSpans(ctx, []flex.SiteID{site}, time.Time{})

	return boundaryDays(rs, ids, consent[site]), err
}

// boundaryDays returns the half-hours of a boundary that several devices may tell of: those
// of the device that tells of the most under the user's consent.
func boundaryDays(
	rs []flex.Reading,
	ids []flex.AssetID,
	consent []flex.Span,
) []settle.MeteredDay {
	most := 0
	var best []settle.MeteredDay
	for _, id := range ids {
		other := func(r flex.Reading) bool { return r.AssetID != id }
		days := settle.ConsentedHalfHours(
			slices.DeleteFunc(slices.Clone(rs), other),
			consent,
		)

		known := 0

		for _, m := range days {
			known += bits.OnesCount64(m.Known)
		}

		if known > most {
			best, most = days, known
		}
	}

	return best
}

// addDays adds the half-hours of days in order to others.
func addDays(to, days []settle.MeteredDay) []settle.MeteredDay {
	for i := range days {
		at, found := slices.BinarySearchFunc(
			to,
			days[i].Day,
			func(m settle.MeteredDay, d flex.Day) int {
				return compareDays(m.Day, d)
			},
		)
		if !found {
			to = slices.Insert(to, at, settle.MeteredDay{Day: days[i].Day})
		}

		for n := 1; n <= days[i].Day.Periods(); n++ {
			if e, known := days[i].At(n); known {
				before, _ := to[at].At(n)
				to[at].Set(n, before+e)
			}
		}
	}

	return to
}
