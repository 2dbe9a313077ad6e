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

// RoleState is which source counts for a role of an organisation's, and why.
type RoleState struct {
	Role    pricing.Role
	Chosen  string   // the source that was chosen and counts now, or empty
	Sources []string // what counts now; of several the latest publication
	Choices []pricing.Choice
}

// Roles returns which sources count for the organisation now, and what an operator should look
// at.
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

// ChooseSource chooses the source of a role from an instant on; without a source the role
// follows the rule again. A half-hour that has begun keeps its source once the organisation has
// flex events, so that nothing settled changes: without an instant, the choice holds from the
// next half-hour on, and for an organisation without events for all time.
func (s *Service) ChooseSource(
	ctx context.Context,
	org flex.OrgID,
	role pricing.Role,
	source string,
	from time.Time,
) (pricing.Choice, error) {
	if !slices.Contains(pricing.Roles, role) {
		return pricing.Choice{}, flex.Fail(
			flex.Invalid,
			"there is no role %q of prices; there are planning, contract and settlement",
			role,
		)
	}

	var c pricing.Choice
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := s.mayChoose(ctx, tx, role, source); err != nil {
			return err
		}

		next := flex.PeriodAt(tx.Now()).End()
		c = pricing.Choice{
			Role:   role,
			Source: source,
			From:   from,
			SetAt:  tx.Now(),
		}

		if from.IsZero() {
			c.From = time.UnixMicro(0).UTC()
		}

		if c.From.Before(next) {
			settled, err := tx.FlexEventsAfter(ctx, c.From)
			if err != nil {
				return err
			}

			if settled > 0 && !from.IsZero() {
				return flex.Fail(
					flex.Conflict,
					"%d flex events after %s have their prices already: choose from %s on at the earliest",
					settled,
					from.Format(time.RFC3339),
					next.Format(time.RFC3339),
				)
			}

			if settled > 0 {
				c.From = next
			}
		}

		return tx.ChoosePriceSource(ctx, c)
	})

	return c, err
}

// mayChoose fails if the source is not known or not fit for the role.
func (s *Service) mayChoose(
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
