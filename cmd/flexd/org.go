package main

import (
	"context"
	"fmt"

	"flexd/internal/flex"
)

// org is `flexd org`.
type org struct {
	Add orgAdd `cmd:"" help:"Make an organisation and print its credentials, once."`
	Set orgSet `cmd:"" help:"Change an organisation's settings, and print them with their defaults."`
}

type orgAdd struct {
	store
	Name     string `arg:"" help:"Name of the organisation."`
	Username string `help:"Username for its programs." required:"" placeholder:"U"`
	Password string `help:"Password; made if not given." placeholder:"P"`
	JSON     bool   `help:"Print as JSON." name:"json"`
}

// Run makes the organisation.
func (o *orgAdd) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	made, password, err := h.Access.AddOrg(ctx, o.Name, o.Username, flex.Secret(o.Password))
	if err != nil {
		return err
	}
	if o.JSON {
		return c.json(map[string]string{"id": made.ID.String(), "name": made.Name, "username": o.Username, "password": password.Reveal()})
	}
	fmt.Fprintf(c.out, "organisation  %s (%s)\nusername      %s\npassword      %s\n\nThe password is shown this once.\n", made.Name, made.ID, o.Username, password.Reveal())
	return nil
}
