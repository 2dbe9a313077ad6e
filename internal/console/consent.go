package console

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// consentLine is a span of the consent to the use of a site's boundary meter.
type consentLine struct {
	flex.Span
	Holds bool // it was not withdrawn
}

// consentLines are the spans of a site, the newest first.
func consentLines(ctx context.Context, tx *store.Tx, site flex.SiteID) (lines []consentLine, err error) {
	spans, err := tx.ConsentSpans(ctx, []flex.SiteID{site}, time.Time{})
	for _, s := range spans[site] {
		lines = append([]consentLine{{s, s.To.After(tx.Now())}}, lines...)
	}
	return lines, err
}

// withdrawConsent records that the user withdrew the consent to the use of the boundary meter,
// for a reason that the audit log keeps. The form must say that it was meant.
func (s *Server) withdrawConsent(r *request) (view, error) {
	id, org, reason, err := meant(s, r, "site", (*store.All).SiteOrg)
	if err != nil {
		return view{}, err
	}

	err = s.act(r, store.Act{Act: "withdraw meter consent", Org: org, Subject: id.String(), Detail: reason}, func() error {
		_, err := s.Registry.WithdrawMeterConsent(r.Context(), org, id)
		return err
	})

	return view{to: "/console/sites/" + id.String() + "?done=withdrawn"}, err
}
