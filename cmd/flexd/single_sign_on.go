package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/app"
	pages "flexd/internal/console"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/signin"
)

// singleSignOn has the flags of the identity provider at which operators sign in.
type singleSignOn struct {
	Issuer       string            `help:"Have operators sign in at this identity provider, by OpenID Connect. Needs --base-url, --sso-client-id and --sso-role; the provider sends browsers back to BASE-URL/console/login/sso/callback." env:"FLEXD_SSO_ISSUER" placeholder:"URL"`
	ClientID     string            `help:"flexd's client id at the provider." env:"FLEXD_SSO_CLIENT_ID" placeholder:"ID"`
	ClientSecret string            `help:"Its secret, if it has one; better in the environment." env:"FLEXD_SSO_CLIENT_SECRET" placeholder:"S"`
	Role         map[string]string `help:"The role for the members of a group at the provider: GROUP=ROLE, or GROUP=ROLE@ORGANISATION,... for some organisations only. May be given more than once. A person in none of the groups has no access." env:"FLEXD_SSO_ROLE" placeholder:"GROUP=ROLE"`
	Scope        []string          `help:"Scopes to request from the provider, in addition to openid." default:"profile,email" env:"FLEXD_SSO_SCOPE" placeholder:"SCOPE"`
	NameClaim    string            `help:"The claim that has the operator's name." default:"preferred_username" env:"FLEXD_SSO_NAME_CLAIM" placeholder:"NAME"`
	GroupsClaim  string            `help:"The claim that has their groups; dots lead into objects, as in realm_access.roles." default:"groups" env:"FLEXD_SSO_GROUPS_CLAIM" placeholder:"NAME"`
	Label        string            `help:"What the login page calls the provider." default:"single sign-on" env:"FLEXD_SSO_LABEL" placeholder:"NAME"`
}

// read returns how operators sign in, or nil if they do by a password.
func (s singleSignOn) read(
	baseURL string,
	now func() time.Time,
) (*access.SingleSignOn, error) {
	if s.Issuer == "" {
		if s.ClientID != "" || len(s.Role) > 0 {
			return nil, flex.Fail(
				flex.Invalid,
				"--sso-client-id and --sso-role say nothing without --sso-issuer: name the identity provider",
			)
		}

		return nil, nil
	}

	if err := signin.CheckIssuer(s.Issuer); err != nil {
		return nil, flex.Fail(flex.Invalid, "--sso-issuer: %v", err)
	}

	if s.ClientID == "" || baseURL == "" {
		return nil, flex.Fail(
			flex.Invalid,
			"--sso-issuer needs --sso-client-id, flexd's name with the provider, and --base-url, where browsers come back to",
		)
	}

	grants, err := s.grants()
	if err != nil {
		return nil, err
	}

	return &access.SingleSignOn{
		Label: s.Label, Grants: grants,
		Provider: signin.New(signin.Settings{
			Issuer:       s.Issuer,
			ClientID:     s.ClientID,
			ClientSecret: flex.Secret(s.ClientSecret),
			Scopes:       s.Scope,
			Redirect:     strings.TrimSuffix(baseURL, "/") + pages.CallbackPath,
			NameClaim:    s.NameClaim,
			GroupsClaim:  s.GroupsClaim,
			Web:          egress.New(egress.Options{Allow: egress.Private}),
			Now:          now,
		}),
	}, nil
}

// grants reads the roles that groups grant.
func (s singleSignOn) grants() (map[string]access.Grant, error) {
	if len(s.Role) == 0 {
		return nil, flex.Fail(
			flex.Invalid,
			"--sso-role: name at least one group and its role, as in flexd-admins=admin; without one nobody could come in",
		)
	}

	grants := map[string]access.Grant{}
	for _, group := range slices.Sorted(maps.Keys(s.Role)) {
		name, orgs, some := strings.Cut(s.Role[group], "@")
		grant := access.Grant{Role: access.OperatorRole(name)}
		if !slices.Contains(access.OperatorRoles(), grant.Role) {
			return nil, flex.Fail(
				flex.Invalid,
				"--sso-role: %q is no role for the group %q: give viewer, operator, finance or admin",
				name,
				group,
			)
		}

		if some {
			grant.Orgs = strings.Split(orgs, ",")
		}

		if slices.Contains(grant.Orgs, "") {
			return nil, flex.Fail(
				flex.Invalid,
				"--sso-role: the group %q gives a role in an organisation without a name: write %s@Acme Energy, or %s for all",
				group,
				name,
				name,
			)
		}

		grants[group] = grant
	}

	return grants, nil
}

// singleSignOn reads the configuration for operators' sign-in.
func (s *serve) singleSignOn(to *app.Settings) error {
	var err error
	to.SSO, err = s.SSO.read(s.BaseURL, clock)
	to.PasswordsShut = s.OperatorsBySSOAlone
	if err == nil && s.OperatorsBySSOAlone && to.SSO == nil {
		err = flex.Fail(
			flex.Invalid,
			"--operators-by-sso-alone would let nobody in: name the identity provider with --sso-issuer",
		)
	}

	return err
}
