package main

import (
	"cmp"
	"context"
	"os/user"
	"time"

	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/flex"
)

// operator is `flexd operator`.
type operator struct {
	Add      operatorAdd          `cmd:"" help:"Add an operator of the console, and print their password, once."`
	Password operatorPassword     `cmd:"" help:"Give an operator a new password, remove their passkeys and end their sessions."`
	Role     operatorRole         `cmd:"" help:"Change what an operator may do in the console."`
	Orgs     operatorOrgs         `cmd:"" help:"Limit an operator to some organisations."`
	List     operatorList         `cmd:"" help:"Who may use the console, and what each may do."`
	Sessions operatorSessions     `cmd:"" help:"Where operators are logged in."`
	Logout   operatorLogout       `cmd:"" help:"End all sessions of an operator."`
	Reset    operatorResetTwoStep `cmd:"" name:"reset-two-step" help:"Remove an operator's two-step login and passkeys and end their sessions, for example when devices and recovery codes are lost."`
	Tie      operatorTie          `cmd:"" help:"Move an operator from a password to the identity provider."`
	Remove   operatorRemove       `cmd:"" help:"Remove an operator, from now on."`
}

// newPassword has an operator and their new password.
type newPassword struct {
	Name     string `arg:"" help:"Name to log in with."`
	Password string `help:"Password, of at least 12 bytes; made if not given. Better in the environment than where ps shows it." env:"FLEXD_OPERATOR_PASSWORD" placeholder:"P"`
}

type operatorAdd struct {
	store
	form
	newPassword
	Role string `help:"viewer (sees everything, changes nothing), operator (runs the fleet), finance (settles and pays) or admin (everything)." enum:"viewer,operator,finance,admin" default:"admin"`
}

// Run adds the operator.
func (o *operatorAdd) Run(ctx context.Context, c console) error {
	return changeOperators(ctx, o.openOrCreate, o.Name, "add operator", func(d *access.Service) error {
		password, err := d.AddOperator(
			ctx,
			o.Name,
			flex.Secret(o.Password),
			access.OperatorRole(o.Role),
		)
		if err != nil {
			return err
		}
		return o.printOperator(c, o.Name, password)
	})
}

type operatorPassword struct {
	store
	form
	newPassword
}

// Run replaces the password.
func (o *operatorPassword) Run(ctx context.Context, c console) error {
	return changeOperators(
		ctx,
		o.open,
		o.Name,
		"set operator password",
		func(d *access.Service) error {
			password, err := d.SetOperatorPassword(
				ctx,
				o.Name,
				flex.Secret(o.Password),
			)

			if err != nil {
				return err
			}

			return o.printOperator(c, o.Name, password)
		},
	)
}

type operatorRole struct {
	store
	Name string `arg:"" help:"Name of the operator."`
	Role string `arg:"" help:"viewer, operator, finance or admin." enum:"viewer,operator,finance,admin"`
}

// Run changes the role.
func (o *operatorRole) Run(ctx context.Context) error {
	return changeOperators(
		ctx,
		o.open,
		o.Name,
		"make operator "+o.Role,
		func(d *access.Service) error {
			return d.SetOperatorRole(ctx, o.Name, access.OperatorRole(o.Role))
		},
	)
}

type operatorOrgs struct {
	store
	Name string   `arg:"" help:"Name of the operator."`
	Org  []string `arg:"" optional:"" help:"Names of organisations; if neither names nor --all are given, the operator has access to none."`
	All  bool     `help:"Access to all organisations, including those that are added later."`
}

// Run sets the organisations.
func (o *operatorOrgs) Run(ctx context.Context) error {
	return changeOperators(
		ctx,
		o.open,
		o.Name,
		"set operator's organisations",
		func(d *access.Service) error {
			return d.SetOperatorOrgs(ctx, o.Name, access.OperatorOrgs{
				Every: o.All,
				Names: o.Org,
			})
		},
	)
}

type operatorLogout struct {
	store
	Name string `arg:"" help:"Name of the operator."`
}

// Run ends the sessions.
func (o *operatorLogout) Run(ctx context.Context) error {
	return changeOperators(
		ctx,
		o.open,
		o.Name,
		"end operator's sessions",
		func(d *access.Service) error {
			return d.EndOperatorSessions(ctx, o.Name)
		},
	)
}

type operatorResetTwoStep struct {
	store
	Name string `arg:"" help:"Name of the operator."`
}

// Run removes the second step.
func (o *operatorResetTwoStep) Run(ctx context.Context) error {
	return changeOperators(
		ctx,
		o.open,
		o.Name,
		"remove a second step and passkeys",
		func(d *access.Service) error {
			return d.ResetFactors(ctx, o.Name)
		},
	)
}

type operatorTie struct {
	store
	Name    string `arg:"" help:"Name of the operator."`
	Subject string `arg:"" help:"The operator's subject at the provider: the claim sub of its tokens."`
	Issuer  string `help:"The provider, as under flexd serve --sso-issuer." required:"" env:"FLEXD_SSO_ISSUER" placeholder:"URL"`
}

// Run ties the operator to the provider.
func (o *operatorTie) Run(ctx context.Context) error {
	return changeOperators(
		ctx,
		o.open,
		o.Name,
		"tie operator to an identity provider",
		func(d *access.Service) error {
			return d.LinkIdentity(ctx, o.Name, o.Issuer, o.Subject)
		},
	)
}

type operatorSessions struct {
	store
	JSON bool `help:"Print as JSON." name:"json"`
}

type sessionRow struct {
	Name      string    `json:"name"`
	Source    string    `json:"source"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Run lists the sessions that are not over.
func (o *operatorSessions) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	sessions, err := h.Access.OperatorSessions(ctx)
	if err != nil {
		return err
	}

	rows := []sessionRow{}
	for _, s := range sessions {
		rows = append(rows, sessionRow{
			s.Name,
			s.Source,
			s.CreatedAt,
			s.UsedAt,
			s.ExpiresAt,
		})
	}

	return list(
		c,
		o.JSON,
		rows,
		"NAME\tFROM\tSINCE\tLAST USED\tUNTIL",
		func(r sessionRow) []any {
			return []any{r.Name, r.Source, r.CreatedAt, r.UsedAt, r.ExpiresAt}
		},
	)
}

type operatorRemove struct {
	store
	Name string `arg:"" help:"Name of the operator."`
}

// Run removes the operator.
func (o *operatorRemove) Run(ctx context.Context) error {
	return changeOperators(ctx, o.open, o.Name, "remove operator", func(d *access.Service) error {
		return d.RemoveOperator(ctx, o.Name)
	})
}

type operatorList struct {
	store
	JSON bool `help:"Print as JSON." name:"json"`
}

type operatorRow struct {
	Name string `json:"name"`
	Role string `json:"role"`
	Orgs string `json:"organisations"` // all, none, or their names
	// password, or the identity provider
	Login     string    `json:"login"`
	CreatedAt time.Time `json:"created_at"`
}

// Run lists the operators who may log in.
func (o *operatorList) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	v, err := h.Access.Operators(ctx)
	if err != nil {
		return err
	}

	rows := []operatorRow{}
	for _, x := range v.Operators {
		rows = append(rows, operatorRow{
			x.Name,
			x.Role,
			x.OrgsText(),
			loginMethod(x.Issuer),
			x.CreatedAt,
		})
	}

	return list(
		c,
		o.JSON,
		rows,
		"NAME\tROLE\tORGANISATIONS\tLOGIN\tADDED",
		func(r operatorRow) []any {
			return []any{r.Name, r.Role, r.Orgs, r.Login, r.CreatedAt}
		},
	)
}

// loginMethod returns how an operator logs in.
func loginMethod(issuer string) string { return cmp.Or(issuer, "password") }

// changeOperators changes operators, and enters that in the audit log.
func changeOperators(
	ctx context.Context,
	open func(context.Context) (*app.App, error),
	name, act string,
	do func(*access.Service) error,
) error {
	h, err := open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()

	return h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Act:     act,
			Subject: name,
		},
		func() error {
			return do(h.Access)
		},
	)
}

// commandLine names the actor when nobody has logged in: the user of the machine, by the
// command line.
var commandLine = func() string {
	const by = "command line"
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return by
	}
	return by + " (" + u.Username + ")"
}()

func (f form) printOperator(c console, name string, password flex.Secret) error {
	return f.print(
		c,
		fields{"operator": name, "password": password.Reveal()},
		"operator  %s\npassword  %s\n\nThe password is shown this once. The console is at /console on the address that flexd serve prints.\n",
		name,
		password.Reveal(),
	)
}
