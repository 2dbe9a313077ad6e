package access

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// The bounds of what limits a credential.
const (
	// AllowedNetworksMax is how many networks a credential may be used from.
	AllowedNetworksMax = 32
	// RollGraceMax is how long the password before a new one may be taken.
	RollGraceMax = 30 * 24 * time.Hour
	// clientBits is the part of an IPv6 address that stands for one client.
	clientBits = 64
)

// errElsewhere is what is said to whoever uses a credential or its token from another network.
var errElsewhere = flex.Fail(
	flex.Unauthorized,
	"This credential may not be used from this address",
)

// Admit fails with Unauthorized if the principal's credential, or any of their organisation's, may
// not be used from where a request comes from: an IPv4 address, or the /64 of an IPv6 address; or
// without a client certificate that the context does not name.
func (s *Service) Admit(ctx context.Context, p Principal, from string) error {
	if err := p.admitCertificate(ctx, s.DB.Now()); err != nil {
		return err
	}

	return p.admitAddress(from)
}

func (p Principal) admitAddress(from string) error {
	if len(p.AllowFrom) == 0 && len(p.OrgFrom) == 0 {
		return nil
	}

	address, err := netip.ParseAddr(from)
	if err != nil {
		network, err := netip.ParsePrefix(from)
		if err != nil {
			return errElsewhere
		}
		address = network.Addr()
	}

	for _, networks := range [][]netip.Prefix{p.AllowFrom, p.OrgFrom} {
		inside := slices.ContainsFunc(networks, func(n netip.Prefix) bool {
			return n.Contains(address)
		})
		if len(networks) > 0 && !inside {
			return errElsewhere
		}
	}

	return nil
}

// checkLimits fails with Invalid if the limits can hold for nobody, or not exactly.
func (s *Service) checkLimits(l store.CredentialLimits) error {
	if !l.ExpiresAt.IsZero() && !l.ExpiresAt.After(s.DB.Now()) {
		return flex.Fail(
			flex.Invalid,
			"a credential cannot expire at %s, which is past",
			l.ExpiresAt.Format(time.RFC3339),
		)
	}

	return checkNetworks(l.AllowFrom)
}

// checkNetworks fails with Invalid if there are too many networks, or one is not written as such.
func checkNetworks(networks []netip.Prefix) error {
	if len(networks) > AllowedNetworksMax {
		return flex.Fail(
			flex.Invalid,
			"there may be %d networks at most, not %d",
			AllowedNetworksMax,
			len(networks),
		)
	}

	for _, n := range networks {
		if n.Masked() != n {
			return flex.Fail(
				flex.Invalid,
				"%s is an address in a network: the network is %s",
				n,
				n.Masked(),
			)
		}

		if n.Addr().Is6() && n.Bits() > clientBits {
			return flex.Fail(
				flex.Invalid,
				"%s is smaller than the /64 that stands for one client: give /64 or wider",
				n,
			)
		}
	}

	return nil
}

// SetOrgNetworks replaces from which networks an organisation's credentials and their tokens are of
// use, in this process at once, in others within seconds. Everywhere goes without any.
func (s *Service) SetOrgNetworks(
	ctx context.Context,
	org flex.OrgID,
	networks []netip.Prefix,
	everywhere bool,
) error {
	if everywhere == (len(networks) > 0) {
		return flex.Fail(flex.Invalid, "give networks, or else everywhere")
	}
	if err := checkNetworks(networks); err != nil {
		return err
	}

	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return tx.SetOrgNetworks(ctx, networks)
	})
	s.tokens.clear()

	return err
}

// OrgNetworks returns from which networks an organisation's credentials are of use; none for
// everywhere.
func (s *Service) OrgNetworks(
	ctx context.Context,
	org flex.OrgID,
) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		networks, err = tx.OrgNetworks(ctx)
		return err
	})

	return networks, err
}

// LimitCredential replaces until when and from where a credential is of use. Its tokens are
// bound by it too: at once in this process, in others within seconds. A household's token that ends
// with it lasts longer where the credential does.
func (s *Service) LimitCredential(
	ctx context.Context,
	username string,
	l store.CredentialLimits,
) error {
	if err := s.checkLimits(l); err != nil {
		return err
	}

	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		households := all.Now().Add(HouseholdTokenLife)
		return foundCredential(username)(all.LimitCredential(ctx, username, l, households))
	})

	s.tokens.clear()

	return err
}

// RollCredential gives a credential a new password, and takes the one before for the time of
// grace, so that a client's machines can change over one after the other. Without a password
// one is made; it is returned here and never again. It is a Conflict while the one before the last is still accepted, for machines may
// have it; without a time of grace both end.
func (s *Service) RollCredential(
	ctx context.Context,
	username string,
	password flex.Secret,
	grace time.Duration,
) (flex.Secret, error) {
	if grace < 0 || grace > RollGraceMax {
		return "", flex.Fail(
			flex.Invalid,
			"the password before is taken for 0 to %d days more, not %s",
			int(RollGraceMax.Hours()/24),
			grace,
		)
	}

	return s.roll(ctx, username, password, func(now, former time.Time) (time.Time, error) {
		if grace > 0 && now.Before(former) {
			return time.Time{}, flex.Fail(
				flex.Conflict,
				"it was rolled already, and the password before is accepted until %s: roll it again after that, with --again to replace the new password alone, or with --grace 0s to end both",
				former.UTC().Format(time.RFC3339),
			)
		}

		return now.Add(grace), nil
	})
}

// RollAgain gives a credential another password in the place of the new one, which may have been lost: the one before is accepted as long as
// RollCredential said. It is a Conflict if none is.
func (s *Service) RollAgain(
	ctx context.Context,
	username string,
	password flex.Secret,
) (flex.Secret, error) {
	return s.roll(ctx, username, password, func(now, former time.Time) (time.Time, error) {
		if !now.Before(former) {
			return time.Time{}, flex.Fail(
				flex.Conflict,
				"no password before the present one is accepted any more: roll it without --again",
			)
		}

		return time.Time{}, nil
	})
}

// roll gives a credential that is not revoked a new password. until returns, from the present and from the end of the former password,
// the end of the one that is replaced; zero leaves the former one as it is.
func (s *Service) roll(
	ctx context.Context,
	username string,
	password flex.Secret,
	until func(now, former time.Time) (time.Time, error),
) (flex.Secret, error) {
	kept, password, err := newSecret(username, password)
	if err != nil {
		return "", err
	}

	return password, s.DB.WriteAll(ctx, func(all *store.All) error {
		c, err := all.CredentialNamed(ctx, username)
		if err != nil {
			return err
		}
		if !c.RevokedAt.IsZero() {
			return foundCredential(username)(false, nil)
		}

		end, err := until(all.Now(), c.FormerUntil)
		if err != nil {
			return err
		}

		return foundCredential(username)(all.RollCredential(
			ctx,
			username,
			kept,
			end,
		))
	})
}

// foundCredential makes a NotFound failure of a change that found no credential.
func foundCredential(username string) func(bool, error) error {
	return func(found bool, err error) error {
		if err == nil && !found {
			return flex.Fail(
				flex.NotFound,
				"no credential is named %q",
				username,
			)
		}
		return err
	}
}

// Credentials returns an organisation's credentials by name, the revoked ones too.
func (s *Service) Credentials(
	ctx context.Context,
	org flex.OrgID,
) ([]store.Credential, error) {
	var found []store.Credential
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		found, err = all.Credentials(ctx, org)
		return err
	})

	return found, err
}
