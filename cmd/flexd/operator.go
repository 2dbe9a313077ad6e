package main

import (
	"context"
	"fmt"
	"os/user"
	"time"

	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// operator is `flexd operator`.
type operator struct {
	Add      operatorAdd      `cmd:"" help:"Let a person into the console, and print their password, once."`
	Password operatorPassword `cmd:"" help:"Give an operator a new password, and end their sessions."`
	List     operatorList     `cmd:"" help:"Who may use the console."`
	Remove   operatorRemove   `cmd:"" help:"Let an operator in no more, from now on."`
}

type operatorAdd struct {
	store
	Name     string `arg:"" help:"Name to log in with."`
	Password string `help:"Password, of at least 12 bytes; made if not given. Better in the environment than where ps shows it." env:"FLEXD_OPERATOR_PASSWORD" placeholder:"P"`
}

// Run adds the operator.
func (o *operatorAdd) Run(ctx context.Context, c console) error {
	return act(ctx, o.openAnew, o.Name, "add operator", func(d *access.Service) error {
		password, err := d.AddOperator(ctx, o.Name, flex.Secret(o.Password))
		if err != nil {
			return err
		}
		return printOperator(c, o.Name, password)
	})
}

type operatorPassword operatorAdd

// Run replaces the password.
func (o *operatorPassword) Run(ctx context.Context, c console) error {
	return act(ctx, o.open, o.Name, "set operator password", func(d *access.Service) error {
		password, err := d.SetOperatorPassword(ctx, o.Name, flex.Secret(o.Password))
		if err != nil {
			return err
		}
		return printOperator(c, o.Name, password)
	})
}

type operatorRemove struct {
	store
	Name string `arg:"" help:"Name of the operator."`
}

// Run removes the operator.
func (o *operatorRemove) Run(ctx context.Context) error {
	return act(ctx, o.open, o.Name, "remove operator", func(d *access.Service) error { return d.RemoveOperator(ctx, o.Name) })
}

type operatorList struct {
	store
	JSON bool `help:"Print as JSON." name:"json"`
}

type operatorRow struct {
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// Run lists the operators who may log in.
func (o *operatorList) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	rows := []operatorRow{}
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		operators, err := all.Operators(ctx)
		for _, x := range operators {
			if x.RemovedAt.IsZero() {
				rows = append(rows, operatorRow{x.Name, x.CreatedAt})
			}
		}

		return err
	})
	if err != nil {
		return err
	}

	return list(c, o.JSON, rows, "NAME\tADDED", func(r operatorRow) []any { return []any{r.Name, r.CreatedAt} })
}

// act does something to the operators, in the audit log.
func act(ctx context.Context, open func(context.Context) (*app.App, error), name, act string, do func(*access.Service) error) error {
	h, err := open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Access.Act(ctx, records.Act{Who: commandLine, Act: act, Subject: name}, func() error { return do(h.Access) })
}

// commandLine is who acts where nobody has logged in: the user of the machine, by the command
// line.
var commandLine = func() string {
	const by = "command line"
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return by
	}
	return by + " (" + u.Username + ")"
}()

func printOperator(c console, name string, password flex.Secret) error {
	_, err := fmt.Fprintf(c.out, "operator  %s\npassword  %s\n\nThe password is shown this once. The console is at /console on the address that flexd serve prints.\n", name, password.Reveal())
	return err
}
