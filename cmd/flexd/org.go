package main

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	records "flexd/internal/store"
)

// org is `flexd org`.
type org struct {
	Add  orgAdd  `cmd:"" help:"Create an organisation and print its credentials, once."`
	List orgList `cmd:"" help:"The organisations."`
	Set  orgSet  `cmd:"" help:"Change an organisation's settings, and print them with their defaults: flexd org set Acme user_share=0.5 --from 2026-04-01."`

	Networks orgNetworks `cmd:"" help:"Show from which networks an organisation's credentials may be used; with networks, set them."`

	Terms orgTerms `cmd:"" help:"Show an organisation's past, current and future terms, and who set them: flexd org terms Acme --json."`
}

type orgAdd struct {
	cellFlags
	Name     string `arg:"" help:"Name of the organisation."`
	Username string `help:"Username for its programs." required:"" placeholder:"U"`
	Password string `help:"Password; made if not given." placeholder:"P"`
	JSON     bool   `help:"Print as JSON." name:"json"`
}

// Run makes the organisation.
func (o *orgAdd) Run(ctx context.Context, c console) error {
	h, err := o.openOrCreate(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	h.Access.Elsewhere = o.eachOtherCell()

	if err := h.DB.KeepEnvironment(ctx); err != nil {
		return err
	}

	var made flex.Org
	var password flex.Secret
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Act:     "add organisation",
			Subject: o.Name,
		},
		func() error {
			var err error
			made, password, err = h.Access.AddOrg(
				ctx,
				o.Name,
				o.Username,
				flex.Secret(o.Password),
			)

			return err
		},
	)

	if flex.KindOf(err) == flex.Conflict {
		return flex.Fail(
			flex.Conflict,
			"%v; flexd credential list has what there is, and flexd credential roll gives a username a new password",
			err,
		)
	}
	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(map[string]string{
			"id":       made.ID.String(),
			"name":     made.Name,
			"username": o.Username,
			"password": password.Reveal(),
		})
	}

	fmt.Fprintf(
		c.out,
		"organisation  %s (%s)\nusername      %s\npassword      %s\n\nThe password is shown this once.\n",
		made.Name,
		made.ID,
		o.Username,
		password.Reveal(),
	)

	return nil
}

type orgList struct {
	store
	JSON bool `help:"Print as JSON." name:"json"`
}

type orgRow struct {
	ID        flex.OrgID `json:"id"`
	Name      string     `json:"name"`
	CreatedAt time.Time  `json:"created_at"`
}

// Run lists the organisations.
func (o *orgList) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	rows := []orgRow{}
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		orgs, err := all.Orgs(ctx)
		for _, x := range orgs {
			rows = append(rows, orgRow{x.ID, x.Name, x.CreatedAt})
		}
		return err
	})
	if err != nil {
		return err
	}

	return list(c, o.JSON, rows, "NAME\tID\tMADE", func(r orgRow) []any {
		return []any{r.Name, r.ID, r.CreatedAt}
	})
}

// orgNamed returns the organisation of that name.
func orgNamed(
	ctx context.Context,
	all *records.All,
	name string,
) (flex.Org, error) {
	org, err := all.OrgNamed(ctx, name)
	if flex.KindOf(err) == flex.NotFound {
		err = flex.Fail(flex.NotFound, "%v; flexd org list prints them", err)
	}

	return org, err
}
