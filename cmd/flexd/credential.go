package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// credentialCommand is `flexd credential`.
type credentialCommand struct {
	List   credentialList   `cmd:"" help:"An organisation's credentials: roles, latest use, limits."`
	Add    credentialAdd    `cmd:"" help:"Give an organisation a further credential, and print its password, once. Example: flexd credential add Acme acme-meters --role metrics_write --expires 2027-01-01"`
	Roll   credentialRoll   `cmd:"" help:"Give a credential a new password; the old one is accepted for a time."`
	Limit  credentialLimit  `cmd:"" help:"Replace the expiry and the permitted networks of a credential and its tokens."`
	Bind   credentialBind   `cmd:"" help:"Replace the client certificates that a credential and its tokens require."`
	Revoke credentialRevoke `cmd:"" help:"End a credential and its tokens."`
}

// limitFlags are the flags of a credential's limits.
type limitFlags struct {
	Expires string         `help:"When it expires: a day in London, or an instant; never if not given." placeholder:"2027-01-01"`
	From    []netip.Prefix `help:"Networks that it may be used from, with commas; everywhere if not given." placeholder:"CIDR"`
}

// limits reads the flags.
func (f limitFlags) limits() (records.CredentialLimits, error) {
	var l records.CredentialLimits
	l.AllowFrom = f.From
	if f.Expires == "" {
		return l, nil
	}

	if day, err := flex.ParseDay(f.Expires); err == nil {
		l.ExpiresAt = day.Start()
		return l, nil
	}

	var err error
	l.ExpiresAt, err = time.Parse(time.RFC3339, f.Expires)
	if err != nil {
		return l, flex.Fail(
			flex.Invalid,
			"--expires: %q is neither a date such as 2027-01-01 nor an instant such as 2027-01-01T12:00:00Z",
			f.Expires,
		)
	}

	return l, nil
}

type credentialList struct {
	store
	Org  string `arg:"" help:"Name of the organisation."`
	JSON bool   `help:"Print as JSON." name:"json"`
}

type credentialRow struct {
	Username  string      `json:"username"`
	Roles     []flex.Role `json:"roles"`
	CreatedAt time.Time   `json:"created_at"`
	UsedAt    time.Time   `json:"used_at,omitzero"`
	ExpiresAt time.Time   `json:"expires_at,omitzero"`
	AllowFrom []string    `json:"allow_from,omitempty"`
	RevokedAt time.Time   `json:"revoked_at,omitzero"`

	Certificates []string `json:"certificates,omitempty"`
}

// Run lists the credentials.
func (o *credentialList) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	org, err := namedOrg(ctx, h, o.Org)
	if err != nil {
		return err
	}

	found, err := h.Access.Credentials(ctx, org.ID)
	if err != nil {
		return err
	}

	return listCredentials(c, o.JSON, found)
}

// listCredentials prints credentials.
func listCredentials(c console, asJSON bool, found []records.Credential) error {
	rows := []credentialRow{}
	for _, x := range found {
		row := credentialRow{
			Username:  x.Username,
			Roles:     x.Roles,
			CreatedAt: x.CreatedAt,
			UsedAt:    x.UsedAt,
			ExpiresAt: x.ExpiresAt,
			RevokedAt: x.RevokedAt,

			Certificates: x.Certificates,
		}

		for _, n := range x.AllowFrom {
			row.AllowFrom = append(row.AllowFrom, n.String())
		}

		rows = append(rows, row)
	}

	return list(
		c,
		asJSON,
		rows,
		"USERNAME\tROLES\tMADE\tLAST USED\tUNTIL\tFROM\tCERTIFICATES\tREVOKED",
		credentialRow.cells,
	)
}

func (r credentialRow) cells() []any {
	return []any{
		r.Username,
		rolesText(r.Roles),
		r.CreatedAt,
		r.UsedAt,
		r.ExpiresAt,
		strings.Join(r.AllowFrom, ","),
		len(r.Certificates),
		r.RevokedAt,
	}
}

func rolesText(roles []flex.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}

	return strings.Join(names, ",")
}

// namedOrg returns the organisation of that name.
func namedOrg(
	ctx context.Context,
	h *app.App,
	name string,
) (flex.Org, error) {
	var org flex.Org
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		org, err = orgNamed(ctx, all, name)
		return err
	})

	return org, err
}

// orgOfCredential returns the organisation of a credential, for the audit log; none if there
// is no credential of that name.
func orgOfCredential(
	ctx context.Context,
	h *app.App,
	username string,
) (flex.OrgID, error) {
	var owner flex.OrgID
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		c, err := all.CredentialNamed(ctx, username)
		owner = c.Org
		if flex.KindOf(err) == flex.NotFound {
			return nil
		}

		return err
	})

	return owner, err
}

type credentialAdd struct {
	cellFlags
	limitFlags
	Org      string   `arg:"" help:"Name of the organisation."`
	Username string   `arg:"" help:"Name to log in with. That of a revoked credential of the organisation may be used again."`
	Role     []string `help:"Role; may be given more than once. All but payouts if not given." placeholder:"ROLE"`
	Password string   `help:"Password; made if not given. Better in the environment than where ps shows it." env:"FLEXD_CREDENTIAL_PASSWORD" placeholder:"P"`
	JSON     bool     `help:"Print as JSON." name:"json"`
}

// roles returns the requested roles.
func (o *credentialAdd) roles() ([]flex.Role, error) {
	if len(o.Role) == 0 {
		return flex.Roles, nil
	}

	known := append(slices.Clone(flex.Roles), flex.Payouts)
	roles := make([]flex.Role, 0, len(o.Role))

	for _, name := range o.Role {
		if !slices.Contains(known, flex.Role(name)) {
			return nil, flex.Fail(
				flex.Invalid,
				"--role: %q is no role: give some of %s",
				name,
				rolesText(known),
			)
		}

		roles = append(roles, flex.Role(name))
	}

	return roles, nil
}

// Run adds the credential.
func (o *credentialAdd) Run(ctx context.Context, c console) error {
	roles, err := o.roles()
	if err != nil {
		return err
	}

	limits, err := o.limits()
	if err != nil {
		return err
	}

	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	h.Access.Elsewhere = o.eachOtherCell()

	org, err := namedOrg(ctx, h, o.Org)
	if err != nil {
		return err
	}

	act := flex.AuditEntry{
		Act:     "add credential",
		Org:     org.ID,
		Subject: o.Username,
	}

	return setPassword(ctx, h, c, act, o.JSON, func() (flex.Secret, error) {
		return h.Access.AddCredential(
			ctx,
			org.ID,
			o.Username,
			flex.Secret(o.Password),
			roles,
			limits,
		)
	})
}

// setPassword makes a new password for a credential and prints it.
func setPassword(
	ctx context.Context,
	h *app.App,
	c console,
	act flex.AuditEntry,
	asJSON bool,
	do func() (flex.Secret, error),
) error {
	act.Who = commandLine
	var password flex.Secret
	err := h.Access.Act(ctx, act, func() error {
		var err error
		password, err = do()
		return err
	})
	if err != nil {
		return err
	}

	return printCredential(c, asJSON, act.Subject, password)
}

func printCredential(
	c console,
	asJSON bool,
	username string,
	password flex.Secret,
) error {
	if asJSON {
		return c.json(map[string]string{
			"username": username,
			"password": password.Reveal(),
		})
	}
	_, err := fmt.Fprintf(
		c.out,
		"username  %s\npassword  %s\n\nThe password is shown this once.\n",
		username,
		password.Reveal(),
	)

	return err
}

type credentialRoll struct {
	store
	Username string        `arg:"" help:"Name of the credential."`
	Grace    time.Duration `help:"How long the old password is accepted too: 0s to 720h." default:"24h" xor:"grace"`
	Again    bool          `help:"Replace only the new password, for example because it was lost: the old one is accepted until the time that was set before. Not together with --grace." xor:"grace"`
	Password string        `help:"Password; made if not given. Better in the environment than where ps shows it." env:"FLEXD_CREDENTIAL_PASSWORD" placeholder:"P"`
	JSON     bool          `help:"Print as JSON." name:"json"`
}

// Run gives the new password.
func (o *credentialRoll) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	org, err := orgOfCredential(ctx, h, o.Username)
	if err != nil {
		return err
	}

	act := flex.AuditEntry{
		Act:     "roll credential",
		Org:     org,
		Subject: o.Username,
		Detail:  fmt.Sprintf("the password before is taken for %s more", o.Grace),
	}

	if o.Again {
		act.Detail = "in the place of the new password"
	}

	return setPassword(ctx, h, c, act, o.JSON, func() (flex.Secret, error) {
		if o.Again {
			return h.Access.RollAgain(
				ctx,
				o.Username,
				flex.Secret(o.Password),
			)
		}
		return h.Access.RollCredential(
			ctx,
			o.Username,
			flex.Secret(o.Password),
			o.Grace,
		)
	})
}

type credentialLimit struct {
	store
	limitFlags
	Username string `arg:"" help:"Name of the credential."`
}

// Run replaces the limits.
func (o *credentialLimit) Run(ctx context.Context) error {
	limits, err := o.limits()
	if err != nil {
		return err
	}

	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	org, err := orgOfCredential(ctx, h, o.Username)
	if err != nil {
		return err
	}

	a := flex.AuditEntry{
		Who:     commandLine,
		Act:     "limit credential",
		Org:     org,
		Subject: o.Username,
		Detail:  fmt.Sprintf("expires %q, from %v", o.Expires, o.From),
	}

	return h.Access.Act(ctx, a, func() error {
		return h.Access.LimitCredential(ctx, o.Username, limits)
	})
}

type credentialRevoke struct {
	store
	Username string `arg:"" help:"Name of the credential."`
}

// Run ends the credential.
func (o *credentialRevoke) Run(ctx context.Context) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	org, err := orgOfCredential(ctx, h, o.Username)
	if err != nil {
		return err
	}

	a := flex.AuditEntry{
		Who:     commandLine,
		Act:     "revoke credential",
		Org:     org,
		Subject: o.Username,
	}

	return h.Access.Act(ctx, a, func() error {
		return h.Access.Revoke(ctx, o.Username)
	})
}
