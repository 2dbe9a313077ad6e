package main

import (
	"context"
	"fmt"
	"strings"

	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// checkRoles reports roles for which no source of prices is chosen, of each organisation.
func checkRoles(ctx context.Context, h *app.App) ([]symptom, error) {
	var orgs []flex.Org
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		orgs, err = all.Orgs(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}

	var out []symptom
	for _, o := range orgs {
		l := look{"price roles of " + o.Name, func(ctx context.Context, h *app.App) ([]symptom, error) {
			return checkRolesOf(ctx, h, o)
		}}

		out = append(out, l.try(ctx, h)...)
	}

	return out, ctx.Err()
}

// checkRolesOf is checkRoles for one organisation.
func checkRolesOf(ctx context.Context, h *app.App, o flex.Org) ([]symptom, error) {
	_, doubts, err := h.Market.Roles(ctx, o.ID)
	if err != nil {
		return nil, err
	}

	x := symptom{
		Part:   "price roles of " + o.Name,
		Well:   len(doubts) == 0,
		Detail: "planning and settlement have their sources",
	}
	if !x.Well {
		x.Detail = strings.Join(doubts, "; ")
		x.Do = fmt.Sprintf(
			"flexd prices roles %q planning=SOURCE settlement=SOURCE",
			o.Name,
		)
	}

	return []symptom{x}, nil
}
