package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Outcome is the interface's word for the result of an enrolment or of its end.
type Outcome string

// The outcomes.
const (
	Enrolled          Outcome = "enrolled"
	AlreadyEnrolled   Outcome = "already_enrolled"
	Unenrolled        Outcome = "unenrolled"
	AlreadyUnenrolled Outcome = "already_unenrolled"
)

// Enrolment is a request to enrol a site.
type Enrolment struct {
	Proposition flex.Proposition
	Override    bool      // also enrol a site that has withdrawn
	ConsentAt   time.Time // replaces the site's meter consent, if given
}

// Enrol enrols a site in a proposition. A site that is already enrolled is unchanged. A site
// that has withdrawn is Unmet without the override, and so is one that is not eligible or has
// not consented to the use of its meter.
func (s *Service) Enrol(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	e Enrolment,
) (Outcome, error) {
	if err := s.lookUpMeterOf(ctx, org, id); err != nil {
		return "", err
	}

	return write(ctx, s, org, func(tx *store.Tx) (Outcome, error) {
		site, err := lockSite(ctx, tx, id)
		if err != nil {
			return "", err
		}

		given, err := giveConsent(ctx, tx, &site, e.ConsentAt, flex.Unmet)
		if err != nil {
			return "", err
		}

		if given {
			err := tx.UpdateSite(
				ctx,
				site,
				addressKey(site.Address.Reveal(), site.Postcode.Reveal()),
			)
			if err != nil {
				return "", err
			}
		}

		return enrol(ctx, tx, site, e)
	})
}

func enrol(
	ctx context.Context,
	tx *store.Tx,
	s flex.Site,
	e Enrolment,
) (Outcome, error) {
	state, err := tx.Enrolment(ctx, s.ID, e.Proposition)
	if err != nil {
		return "", err
	}

	if state == flex.Enrolled {
		return AlreadyEnrolled, nil
	}

	if state == flex.Withdrawn && !e.Override {
		return "", flex.Fail(
			flex.Unmet,
			"the site withdrew from %s earlier: to enrol it again, at the user's wish, send override_withdrawal true",
			e.Proposition,
		)
	}

	if err := checkEligible(ctx, tx, s, e.Proposition); err != nil {
		return "", err
	}

	err = tx.AddMethod(ctx, s.ID, flex.DispatchMethod(e.Proposition))
	if err != nil {
		return "", err
	}

	return Enrolled, tx.SetEnrolment(ctx, s.ID, e.Proposition, flex.Enrolled)
}

// checkEligible fails, with every reason, if the site is not eligible for the proposition.
func checkEligible(
	ctx context.Context,
	tx *store.Tx,
	s flex.Site,
	p flex.Proposition,
) error {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	e, err := eligibility(ctx, tx, s)
	if err != nil {
		return err
	}

	var reasons []string
	unmetered := e.unmetered && flex.DispatchMethod(p) == flex.FullScheduleMethod
	if !e.Consented && !unmetered && !org.MeterConsentExempt {
		reasons = append(
			reasons,
			"the user's consent to the use of the boundary meter is missing: send gave_boundary_meter_consent_at",
		)
	}

	if !slices.Contains(e.Open, p) {
		reasons = append(reasons, notOpen(e, p))
	}

	if len(reasons) == 0 {
		return nil
	}

	return flex.Fail(
		flex.Unmet,
		"the site cannot be enrolled in %s: %s",
		p,
		strings.Join(reasons, "; "),
	)
}

// notOpen explains why neither the site's meter nor any of its assets opens the proposition.
func notOpen(e Eligibility, p flex.Proposition) string {
	var lines []string
	if !e.HalfHourly {
		lines = append(lines, notSettled(e.mpan, e.meter))
	}

	add := func(label string, vs []PropositionEligibility) {
		for _, v := range vs {
			if v.Proposition == p {
				lines = append(lines, label+": "+issuesText(v.Issues))
			}
		}
	}

	add("the site", e.withoutAssets)

	for _, a := range e.Assets {
		add("asset "+a.Asset.ExternalID, a.Propositions)
	}

	return strings.Join(lines, "; ")
}

// notSettled explains why the half-hours of an MPAN cannot be settled; the meter is nil if it
// is on no list.
func notSettled(mpan string, m *flex.Meter) string {
	switch {
	case mpan == "":
		return "it has no MPAN"
	case m != nil && !m.Import:
		return "the MPAN is that of an export meter: give the import meter's"
	case m != nil && !m.Energised:
		return "its meter is not energised: no supply flows through it"
	case m != nil:
		return "its meter is not settled half-hourly"
	}

	_, err := directory.ParseMPAN(mpan)
	if e, ok := errors.AsType[*flex.Error](err); ok {
		return "the MPAN is wrong: " + strings.Join(e.Details, ", ")
	}

	return "the directory of meters does not know the MPAN, so its meter is not known to be settled half-hourly"
}

// Unenrol ends a site's enrolment in one proposition. Its assets are no longer scheduled under
// it; the site, its assets, its other propositions and its money stay. A site that was never
// enrolled, and consented to the dispatch method alone, is scheduled too: that consent ends.
func (s *Service) Unenrol(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	p flex.Proposition,
) (Outcome, error) {
	return write(ctx, s, org, func(tx *store.Tx) (Outcome, error) {
		if _, err := lockToStop(ctx, tx, id); err != nil {
			return "", err
		}

		part, err := isEnrolled(ctx, tx, id, p)
		if err != nil {
			return "", err
		}
		if !part {
			return AlreadyUnenrolled, nil
		}

		return Unenrolled, withdraw(ctx, tx, id, flex.DispatchMethod(p))
	})
}

// isEnrolled reports whether a site is enrolled in a proposition, or was never enrolled and
// consented to its dispatch method.
func isEnrolled(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
	p flex.Proposition,
) (bool, error) {
	state, err := tx.Enrolment(ctx, id, p)
	if err != nil || state != "" {
		return state == flex.Enrolled, err
	}

	methods, err := tx.Methods(ctx, id)

	return slices.Contains(methods, flex.DispatchMethod(p)), err
}

// withdraw ends a site's consent to a dispatch method, and its enrolment in the proposition
// of that name. Pauses that have not begun are cancelled.
func withdraw(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
	m flex.DispatchMethod,
) error {
	p := flex.Proposition(m)
	state, err := tx.Enrolment(ctx, id, p)
	if err != nil {
		return err
	}

	if state == flex.Enrolled {
		if err := tx.SetEnrolment(ctx, id, p, flex.Withdrawn); err != nil {
			return err
		}
	}

	if m == flex.LimitedPauseMethod {
		if err := tx.CancelPauses(ctx, id); err != nil {
			return err
		}
	}

	dropped, err := tx.DropMethod(ctx, id, m)
	if err != nil || !dropped || m != flex.FullScheduleMethod {
		return err
	}

	assets, err := tx.LockAssetsOf(ctx, id)
	if err != nil {
		return err
	}

	return stopControl(ctx, tx, assets...)
}

// GiveDispatchConsent records a site's consent to dispatch methods. It does not enrol the
// site.
func (s *Service) GiveDispatchConsent(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	methods []flex.DispatchMethod,
) (flex.SiteRecord, error) {
	return write(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		var r flex.SiteRecord
		if _, err := lockSite(ctx, tx, id); err != nil {
			return r, err
		}

		for _, m := range methods {
			if err := tx.AddMethod(ctx, id, m); err != nil {
				return r, err
			}
		}

		return tx.SiteRecord(ctx, id)
	})
}

// TakeDispatchConsent withdraws a site's consent to dispatch methods, and with it the
// enrolment in the propositions of the same names.
func (s *Service) TakeDispatchConsent(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	methods []flex.DispatchMethod,
) (flex.SiteRecord, error) {
	return write(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		var r flex.SiteRecord
		if _, err := lockToStop(ctx, tx, id); err != nil {
			return r, err
		}

		for _, m := range methods {
			if err := withdraw(ctx, tx, id, m); err != nil {
				return r, err
			}
		}

		return tx.SiteRecord(ctx, id)
	})
}
