package access

import (
	"context"
	"crypto/sha256"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// HouseholdTokenLife is as good as for ever: somebody who lives at a site writes the token into a
// program of theirs once.
const HouseholdTokenLife = 10 * 365 * 24 * time.Hour

// IssueHousehold gives out a site's one household token, in the name of the credential that asks. It
// has the role HomeAssistant and no other, and ends the site's former one. Of two that are asked for at once the second
// ends the first.
func (s *Service) IssueHousehold(
	ctx context.Context,
	who Principal,
	site flex.SiteID,
) (Issued, error) {
	p := Principal{
		Org:      who.Org,
		Username: who.Username,
		Roles:    []flex.Role{flex.HomeAssistant},
		Site:     site,
	}

	var t Issued
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		tx, err := all.For(ctx, p.Org)
		if err != nil {
			return err
		}

		if _, err := tx.LockedSite(ctx, site); err != nil {
			return err
		}

		t, err = issue(ctx, all, p, HouseholdTokenLife)
		if err != nil {
			return err
		}

		return all.DropTokens(ctx, p.Org, site, p.Roles, sha256.Sum256([]byte(t.Token)))
	})

	s.tokens.clear()

	return t, err
}

// EndHousehold ends a site's household token, if it has one. Another process may believe the token
// for some seconds more.
func (s *Service) EndHousehold(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) error {
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.DropTokens(
			ctx,
			org,
			site,
			[]flex.Role{flex.HomeAssistant},
			[sha256.Size]byte{},
		)
	})
	s.tokens.clear()

	return err
}
