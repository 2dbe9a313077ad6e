package registry

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// ConsentState is the state of one of a site's consents.
type ConsentState struct {
	Kind    string    // BoundaryMeter, or a dispatch method
	InForce bool      // given and not withdrawn since
	At      time.Time // when it was given; if it was withdrawn, when that was
}

// BoundaryMeter is the kind of consent that is no dispatch method.
const BoundaryMeter = store.BoundaryMeter

// Consents returns the state of the consents that a site ever gave, the boundary meter's
// first.
func (s *Service) Consents(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) ([]ConsentState, error) {
	var found []ConsentState
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		found, err = consentsOf(ctx, tx, site)
		return err
	})

	return found, err
}

func consentsOf(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) ([]ConsentState, error) {
	s, err := tx.Site(ctx, site)
	if err != nil {
		return nil, err
	}

	methods, err := tx.Methods(ctx, site)
	if err != nil {
		return nil, err
	}

	history, err := tx.Consents(ctx, site)
	if err != nil {
		return nil, err
	}

	var found []ConsentState
	for _, kind := range []string{
		BoundaryMeter,
		string(flex.FullScheduleMethod),
		string(flex.LimitedPauseMethod),
		CarDischarge,
	} {
		state := ConsentState{
			Kind:    kind,
			InForce: slices.Contains(methods, flex.DispatchMethod(kind)),
		}

		if kind == BoundaryMeter {
			state.InForce = !s.ConsentAt.IsZero()
		}
		if kind == CarDischarge {
			state.InForce = !s.DischargeConsentAt.IsZero()
		}

		for _, c := range history {
			if c.Kind == kind {
				state.At = validFrom(c, state.InForce)
			}
		}

		if state.InForce || !state.At.IsZero() {
			found = append(found, state)
		}
	}

	return found, nil
}

// validFrom returns since when a consent has its state: the instant at which it was given, or
// at which its withdrawal was recorded.
func validFrom(c store.Consent, isGiven bool) time.Time {
	if isGiven && !c.GivenAt.IsZero() {
		return c.GivenAt
	}
	return c.RecordedAt
}

// SetConsent records that a site's user gave or withdrew one of its consents, by the rules of
// the interface. If a dispatch method is given again, the site is enrolled again in its
// proposition if it once was. A kind that the site never gave is NotFound.
func (s *Service) SetConsent(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	kind string,
	given bool,
) error {
	now, withdrawn, err := s.consentNow(ctx, org, site, kind)
	if err != nil {
		return err
	}

	if kind == CarDischarge {
		return s.setDischargeConsent(ctx, org, site, now, given)
	}

	if kind == BoundaryMeter && given {
		_, err := s.GiveMeterConsent(ctx, org, site, now)
		return err
	}

	if kind == BoundaryMeter {
		_, err := s.WithdrawMeterConsent(ctx, org, site)
		return err
	}

	if given && withdrawn {
		_, err := s.Enrol(ctx, org, site, Enrolment{
			Proposition: flex.Proposition(kind),
			Override:    true,
		})

		return err
	}

	methods := []flex.DispatchMethod{flex.DispatchMethod(kind)}
	change := s.TakeDispatchConsent
	if given {
		change = s.GiveDispatchConsent
	}

	_, err = change(ctx, org, site, methods)

	return err
}

// consentNow returns the organisation's time, and whether the site withdrew from the
// proposition of a consent's name.
func (s *Service) consentNow(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	kind string,
) (now time.Time, withdrawn bool, err error) {
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		now = tx.Now()

		known, err := consentsOf(ctx, tx, site)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(known, func(c ConsentState) bool {
			return c.Kind == kind
		}) {
			return flex.Fail(
				flex.NotFound,
				"this home never gave such a consent",
			)
		}

		state, err := tx.Enrolment(ctx, site, flex.Proposition(kind))
		withdrawn = state == flex.Withdrawn
		return err
	})

	return now, withdrawn, err
}
