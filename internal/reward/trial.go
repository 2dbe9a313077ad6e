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

// BaselineTrial selects the past days and settlement periods on which baselines are tested.
type BaselineTrial struct {
	From, To    flex.Day // both included
	First, Last int      // settlement periods of each day
}

// TrialDaysMax is the most days that one trial may cover.
const TrialDaysMax = 400

// MethodAccuracy is a baseline method and its accuracy on the tested days.
type MethodAccuracy struct {
	Name string
	settle.Accuracy
}

// TryMethods tests every baseline method on one meter.
func TryMethods(t *settle.Trial) []MethodAccuracy {
	rules := []struct {
		name string
		rule settle.Rule
	}{{"mean", settle.DefaultRule}, {"mean, in_day", settle.DefaultRule}, {"mid_8_of_10", settle.DefaultRule}, {"nominated", settle.DefaultRule}}

	rules[1].rule.InDay = true
	rules[2].rule.Method = settle.MiddleEight
	rules[3].rule.Method = settle.Nominated
	results := make([]MethodAccuracy, len(rules))

	for i, r := range rules {
		results[i] = MethodAccuracy{r.name, t.Try(r.rule)}
	}

	return results
}

// TryBaselines tests every method on the boundary meters of the organisation's sites, on days
// without a flex event.
func (s *Service) TryBaselines(
	ctx context.Context,
	org flex.OrgID,
	t BaselineTrial,
) ([]MethodAccuracy, error) {
	if n := len(daysBetween(t.From, t.To)); n > TrialDaysMax {
		return nil, flex.Fail(
			flex.Invalid,
			"baselines are tried on up to %d days at a time, not on %d",
			TrialDaysMax,
			n,
		)
	}

	all := TryMethods(&settle.Trial{})

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

// trialPage is the number of sites that one transaction lists.
const trialPage = 1000

// trySite adds the accuracy of the methods at one site.
func (s *Service) trySite(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	t BaselineTrial,
	all []MethodAccuracy,
) error {
	var trial *settle.Trial
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		trial, err = siteTrial(ctx, tx, site, t)
		return err
	})
	if err != nil {
		return err
	}

	for i, result := range TryMethods(trial) {
		all[i].Add(result.Accuracy)
	}

	return nil
}

// siteTrial reads a site's metered past.
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

	return trial, addCars(ctx, tx, trial, assets, all)
}

func idsOf(assets []flex.Asset) []flex.AssetID {
	ids := make([]flex.AssetID, len(assets))
	for i, a := range assets {
		ids[i] = a.ID
	}

	return ids
}

// addCars adds to the trial the energy of the site's cars, and the part of their plans that a
// nominated baseline would count.
func addCars(
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

		stays, err := pluggedInSpans(ctx, tx, a.ID, flex.Span{
			From: days[0].Start(),
			To:   days[len(days)-1].Add(1).Start(),
		})
		if err != nil {
			return err
		}

		used = append(used, settle.UsedEnergy(own, stays, days))
		trial.PlannedCars = addDays(trial.PlannedCars, supportedPlan(&a, own, stays))
	}

	trial.Home = settle.Without(trial.Metered, used...)

	return nil
}

// pluggedInSpans returns the times of a span in which an asset was plugged in.
func pluggedInSpans(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	span flex.Span,
) ([]flex.Span, error) {
	sessions, err := tx.SessionsWithin(ctx, asset, span)
	var spans []flex.Span
	for _, s := range sessions {
		plugged := flex.Span{From: s.PluggedInAt, To: s.PluggedOutAt}
		if plugged.To.IsZero() {
			plugged.To = tx.Now()
		}
		spans = append(spans, plugged)
	}

	return spans, err
}

// supportedPlan returns the part of an asset's plan that a nominated baseline would count if
// nothing controlled the asset. Such a plan is full power from the plug-in on, limited to what
// the meter shows the car could take (see settle.Stay).
func supportedPlan(
	a *flex.Asset,
	own []settle.MeteredDay,
	stays []flex.Span,
) []settle.MeteredDay {
	power := a.RatedPower()
	var supported []settle.MeteredDay
	for _, span := range stays {
		stay := settle.Stay{Span: span}
		stay.UseMeter(own)
		stay.Plan = stay.FullPowerPlan(power)
		supported = addDays(supported, stay.ByDay(stay.SupportedPlan()))
	}

	return supported
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

// boundaryDays returns the half-hours of a boundary. If several devices read it, the device with
// the most half-hours under the user's consent is used.
func boundaryDays(
	rs []flex.Reading,
	ids []flex.AssetID,
	consent []flex.Span,
) []settle.MeteredDay {
	most := 0
	var best []settle.MeteredDay
	for _, id := range ids {
		ofOther := func(r flex.Reading) bool { return r.AssetID != id }
		days := settle.ConsentedHalfHours(
			slices.DeleteFunc(slices.Clone(rs), ofOther),
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

// addDays adds the energy of days to that of the same half-hours in to, which is in order of day.
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
