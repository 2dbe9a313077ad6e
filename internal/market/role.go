package market

import (
	"context"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
)

// RoleState is which sources count for a role in an organisation, and why.
type RoleState struct {
	Role    pricing.Role
	Chosen  string   // the chosen source that counts now; empty if none was chosen
	Sources []string // the sources that count now; of several the latest publication counts
	Choices []pricing.Choice
}

// Roles returns which sources count for the organisation now, and the doubts that an operator
// should resolve.
func (s *Service) Roles(
	ctx context.Context,
	org flex.OrgID,
) ([]RoleState, []string, error) {
	var (
		roles  []RoleState
		doubts []string
	)

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		roles, doubts, err = rolesOf(ctx, tx)
		return err
	})

	return roles, doubts, err
}

// rolesOf is Roles within a transaction.
func rolesOf(
	ctx context.Context,
	tx *store.Tx,
) ([]RoleState, []string, error) {
	s, err := tx.PriceSelection(ctx)
	if err != nil {
		return nil, nil, err
	}

	var roles []RoleState
	for _, role := range pricing.Roles {
		r := RoleState{
			Role:    role,
			Chosen:  s.Chosen(role, tx.Now()),
			Sources: s.SourcesAt(role, tx.Now()),
		}

		for _, c := range s.Choices {
			if c.Role == role {
				r.Choices = append(r.Choices, c)
			}
		}

		roles = append(roles, r)
	}

	return roles, s.Doubts(tx.Now()), nil
}

// ChooseSource is ChooseSources for one role.
func (s *Service) ChooseSource(
	ctx context.Context,
	org flex.OrgID,
	role pricing.Role,
	source string,
	from time.Time,
) (pricing.Choice, error) {
	chosen, err := s.ChooseSources(
		ctx,
		org,
		[]pricing.Choice{{Role: role, Source: source, From: from}},
	)
	if err != nil {
		return pricing.Choice{}, err
	}

	return chosen[0], nil
}

// ChooseSources chooses the sources of roles, each from an instant on. If one choice is
// refused, none is made. A choice with an empty source returns the role to the rule of package
// pricing. Once the organisation has flex events, a half-hour that has begun keeps its source,
// so that nothing settled changes: a choice without an instant then counts from the next
// half-hour on, else for all time.
func (s *Service) ChooseSources(
	ctx context.Context,
	org flex.OrgID,
	wanted []pricing.Choice,
) ([]pricing.Choice, error) {
	for _, c := range wanted {
		if !slices.Contains(pricing.Roles, c.Role) {
			return nil, flex.Fail(
				flex.Invalid,
				"there is no role %q of prices; there are planning, contract and settlement",
				c.Role,
			)
		}
	}

	var chosen []pricing.Choice
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		chosen = nil // a write may be run again
		for _, c := range wanted {
			made, err := s.choose(ctx, tx, c)
			if err != nil {
				return err
			}
			chosen = append(chosen, made)
		}

		return nil
	})

	return chosen, err
}

// choose stores one choice, and returns it with the instant from which it counts.
func (s *Service) choose(
	ctx context.Context,
	tx *store.Tx,
	wanted pricing.Choice,
) (pricing.Choice, error) {
	if err := s.checkChoice(ctx, tx, wanted.Role, wanted.Source); err != nil {
		return wanted, err
	}

	c := wanted
	c.SetAt = tx.Now()
	if c.From.IsZero() {
		c.From = time.UnixMicro(0).UTC()
	}

	next := flex.PeriodAt(tx.Now()).End()
	if c.From.Before(next) {
		settled, err := tx.FlexEventsAfter(ctx, c.From)
		if err != nil {
			return c, err
		}

		if settled > 0 && !wanted.From.IsZero() {
			return c, flex.Fail(
				flex.Conflict,
				"%d flex events after %s have their prices already: choose from %s on at the earliest",
				settled,
				wanted.From.Format(time.RFC3339),
				next.Format(time.RFC3339),
			)
		}

		if settled > 0 {
			c.From = next
		}
	}

	err := tx.ChoosePriceSource(ctx, c)

	return c, err
}

// checkChoice fails if the source is not known or not allowed for the role.
func (s *Service) checkChoice(
	ctx context.Context,
	tx *store.Tx,
	role pricing.Role,
	source string,
) error {
	if source == "" {
		return nil
	}

	selection, err := tx.PriceSelection(ctx)
	if err != nil {
		return err
	}

	var known []string
	for _, x := range selection.Sources {
		known = append(known, x.Name)
	}

	for _, x := range s.Sources {
		if !slices.Contains(known, x.Name()) {
			known = append(known, x.Name())
		}
	}

	if !slices.Contains(known, source) {
		return flex.Fail(
			flex.Invalid,
			"no source is called %q; those that have published are %s",
			source,
			strings.Join(known, ", "),
		)
	}

	return pricing.Allowed(role, source, selection.Environment)
}
