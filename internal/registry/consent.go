package registry

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// clockSlack is how far a client's clock may be ahead of flexd's.
const clockSlack = 5 * time.Minute

// giveConsent sets a site's consent to the use of the boundary meter, as given at an instant,
// and reports whether that is a change. All consents to this use are set here. It fails with
// the given kind for an instant in the future, and for one before the last withdrawal, which
// would be the consent that was withdrawn.
func giveConsent(
	ctx context.Context,
	tx *store.Tx,
	s *flex.Site,
	at time.Time,
	kind flex.Kind,
) (bool, error) {
	if at.IsZero() || at.Equal(s.ConsentAt) {
		return false, nil
	}

	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return false, err
	}

	if s.MPAN == "" && s.ExternalUserID == "" && withoutMPAN(org) {
		return false, wrongConsent(
			kind,
			"the site has no metering point to whose readings a user could consent: leave gave_boundary_meter_consent_at out, or send its mpan first",
		)
	}

	if at.After(tx.Now().Add(clockSlack)) {
		return false, wrongConsent(
			kind,
			"gave_boundary_meter_consent_at lies in the future: give the instant at which the user consented",
		)
	}

	withdrawn, err := tx.ConsentWithdrawn(ctx, s.ID)
	if err != nil {
		return false, err
	}

	if !at.After(withdrawn) {
		return false, wrongConsent(
			kind,
			fmt.Sprintf("the user withdrew the consent to the use of the boundary meter at %s: gave_boundary_meter_consent_at must be later, of a new consent",
				withdrawn.UTC().Format(time.RFC3339)),
		)
	}

	s.ConsentAt = at

	return true, nil
}

// wrongConsent is the failure for a consent that cannot be recorded; with Invalid it names the
// field.
func wrongConsent(kind flex.Kind, reason string) error {
	if kind == flex.Invalid {
		return invalid([]flex.Fault{faultAt(
			"value_error.consent",
			reason,
			nil,
			"gave_boundary_meter_consent_at",
		)})
	}

	return flex.Fail(kind, "%s", reason)
}

// giveConsentAgain is giveConsent at the registration of a user: a consent that was withdrawn
// since is ignored.
func giveConsentAgain(
	ctx context.Context,
	tx *store.Tx,
	s *flex.Site,
	at time.Time,
) (bool, error) {
	withdrawn, err := tx.ConsentWithdrawn(ctx, s.ID)
	if err != nil || !at.After(withdrawn) {
		return false, err
	}

	return giveConsent(ctx, tx, s, at, flex.Invalid)
}

// GiveMeterConsent records when the end user consented to the use of the boundary meter's
// readings.
func (s *Service) GiveMeterConsent(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	at time.Time,
) (flex.SiteRecord, error) {
	return write(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		site, err := lockSite(ctx, tx, id)
		if err != nil {
			return flex.SiteRecord{}, err
		}

		_, err = giveConsent(ctx, tx, &site, at, flex.Malformed)
		if err != nil {
			return flex.SiteRecord{}, err
		}
		err = tx.UpdateSite(
			ctx,
			site,
			addressKey(site.Address.Reveal(), site.Postcode.Reveal()),
		)
		if err != nil {
			return flex.SiteRecord{}, err
		}

		return tx.SiteRecord(ctx, id)
	})
}

// WithdrawMeterConsent records that the end user withdrew the consent to the use of the
// boundary meter's readings: no reading from now on is used. Readings of the time in which it
// was in force may be. A site without the consent is unchanged.
func (s *Service) WithdrawMeterConsent(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) (flex.SiteRecord, error) {
	return write(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		site, err := lockSite(ctx, tx, id)
		if err != nil {
			return flex.SiteRecord{}, err
		}

		site.ConsentAt = time.Time{}
		err = tx.UpdateSite(
			ctx,
			site,
			addressKey(site.Address.Reveal(), site.Postcode.Reveal()),
		)
		if err != nil {
			return flex.SiteRecord{}, err
		}

		return tx.SiteRecord(ctx, id)
	})
}
