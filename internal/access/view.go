package access

import (
	"context"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Action is what somebody does, as the audit log names it.
type Action struct {
	Act     string     // such as "halt pushes"
	Org     flex.OrgID // zero if it concerns none, or all
	Subject string     // what it is done to
	Detail  string     // in words
}

// By is the entry of the audit log for the action of somebody, from an address.
func (a Action) By(who, source string) flex.AuditEntry {
	return flex.AuditEntry{
		Who:     who,
		Source:  source,
		Act:     a.Act,
		Org:     a.Org,
		Subject: a.Subject,
		Detail:  a.Detail,
	}
}

// AuditFilter says which entries of the audit log are looked for; what is empty takes all.
type AuditFilter struct {
	Who string
	Act string
	// the id of a site: what was done to it, and who saw it
	Site   string
	Org    flex.OrgID // zero takes all
	Before string     // the id of an entry: those older than it
	Limit  int
}

// AuditView is a part of the audit log, the newest first, and whom it can be filtered by.
type AuditView struct {
	Acts      []AuditLine
	Operators []string
	Orgs      []flex.Org
}

// AuditLine is an entry of the audit log with its organisation's name.
type AuditLine struct {
	ID      string
	At      time.Time // by the true clock
	Who     string    // an operator's name
	Source  string    // the address that it came from, if any
	Act     string    // what was done, as "halt pushes"
	OrgName string
	Subject string // what it was done to
	Detail  string // in words
	Outcome string // "done", or why not; empty while it has not ended
	EndedAt time.Time
}

func auditLine(a *flex.AuditEntry, org string) AuditLine {
	return AuditLine{
		ID:      a.ID.String(),
		At:      a.At,
		Who:     a.Who,
		Source:  a.Source,
		Act:     a.Act,
		OrgName: org,
		Subject: a.Subject,
		Detail:  a.Detail,
		Outcome: a.Outcome,
		EndedAt: a.EndedAt,
	}
}

// AuditSite returns the id of the site whose acts are looked for, as the audit log has it; nothing for nothing.
// A text that is no id is refused: no act would be found, as if nobody had looked.
func AuditSite(text string) (string, error) {
	if text == "" {
		return "", nil
	}

	var id flex.SiteID
	if id.UnmarshalText([]byte(text)) != nil {
		return "", flex.Fail(
			flex.Invalid,
			"%q is not the id of a site: search for it first",
			text,
		)
	}

	return id.String(), nil
}

// Audit returns a part of the audit log. A Before that is no id names nothing: NotFound.
func (s *Service) Audit(
	ctx context.Context,
	f AuditFilter,
) (AuditView, error) {
	site, err := AuditSite(f.Site)
	if err != nil {
		return AuditView{}, err
	}

	filter := store.ActFilter{
		Who:     f.Who,
		Act:     f.Act,
		Subject: site,
		Org:     f.Org,
		Limit:   f.Limit,
	}
	if f.Before != "" && filter.Before.UnmarshalText([]byte(f.Before)) != nil {
		return AuditView{}, flex.Fail(
			flex.NotFound,
			"%q is not the id of any act",
			f.Before,
		)
	}

	var v AuditView
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		v = AuditView{}
		acts, err := all.Acts(ctx, filter)
		if err != nil {
			return err
		}

		orgs, err := all.Orgs(ctx)
		if err != nil {
			return err
		}

		v.Orgs = orgs
		names := orgNames(orgs)

		for _, a := range acts {
			v.Acts = append(v.Acts, auditLine(&a, names[a.Org]))
		}

		v.Operators, err = operatorNames(ctx, all)

		return err
	})

	return v, err
}

// operatorNames returns the names of all operators; none in a context of some organisations.
func operatorNames(
	ctx context.Context,
	all *store.All,
) ([]string, error) {
	if _, bounded := store.WithinOf(ctx); bounded {
		return nil, nil
	}

	operators, err := all.Operators(ctx)

	var names []string
	for _, o := range operators {
		names = append(names, o.Name)
	}

	return names, err
}

// Session is one place where an operator is logged in.
type Session struct {
	Name      string    `json:"name"`
	Source    string    `json:"source"` // address that it was opened from
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"`
	ExpiresAt time.Time `json:"expires_at"`
	This      bool      `json:"this"` // the session that asks
}

func sessionOf(s *store.OperatorSession) Session {
	return Session{
		Name:      s.Name,
		Source:    s.Source,
		CreatedAt: s.CreatedAt,
		UsedAt:    s.UsedAt,
		ExpiresAt: s.ExpiresAt,
	}
}

// SessionsOf lists where an operator is logged in, and marks the session of the token.
func (s *Service) SessionsOf(
	ctx context.Context,
	id flex.OperatorID,
	token flex.Secret,
) ([]Session, error) {
	sessions, err := s.OperatorSessions(ctx)

	var list []Session
	for _, x := range sessions {
		if x.Operator == id {
			l := sessionOf(&x)
			l.This = x.Hash == SessionHash(token)
			list = append(list, l)
		}
	}

	return list, err
}

// OperatorsView is who may use the console, and where they are logged in.
type OperatorsView struct {
	Operators []OperatorLine
	Sessions  []Session
	Orgs      []flex.Org
}

// OperatorLine is an operator in a list.
type OperatorLine struct {
	ID   flex.OperatorID
	Name string
	Role string
	// of the identity provider that they sign in at; "" if they have a password
	Issuer    string
	CreatedAt time.Time
	Sessions  int
	LastUsed  time.Time // zero if nowhere logged in
	TwoStep   bool      // whether their logins ask for a code
	SomeOrgs  bool      // whether they are of some organisations alone
	OrgNames  []string  // of which, then
}

// OrgsText says whose operator it is.
func (l OperatorLine) OrgsText() string {
	if !l.SomeOrgs {
		return "all"
	}

	if len(l.OrgNames) == 0 {
		return "none"
	}

	return strings.Join(l.OrgNames, ", ")
}

// Operators lists who may use the console.
func (s *Service) Operators(ctx context.Context) (OperatorsView, error) {
	sessions, err := s.OperatorSessions(ctx)
	if err != nil {
		return OperatorsView{}, err
	}

	var v OperatorsView
	for _, x := range sessions {
		v.Sessions = append(v.Sessions, sessionOf(&x))
	}

	coded, err := s.TwoStepOperators(ctx)
	if err != nil {
		return v, err
	}

	err = s.people().ReadAll(ctx, func(all *store.All) error {
		v.Operators = nil
		operators, err := all.Operators(ctx)

		for _, o := range operators {
			if o.RemovedAt.IsZero() {
				line := operatorLine(o, sessions)
				line.TwoStep = slices.Contains(coded, o.ID)
				v.Operators = append(v.Operators, line)
			}
		}

		if err != nil {
			return err
		}

		return v.addOrgs(ctx, all)
	})

	return v, err
}

// addOrgs says whose operators they are.
func (v *OperatorsView) addOrgs(
	ctx context.Context,
	all *store.All,
) error {
	var err error
	v.Orgs, err = all.Orgs(ctx)
	if err != nil {
		return err
	}

	by, err := all.OperatorOrgs(ctx)
	for i := range v.Operators {
		orgs, some := by[v.Operators[i].ID]
		v.Operators[i].SomeOrgs = some

		for _, o := range v.Orgs {
			if slices.Contains(orgs, o.ID) {
				v.Operators[i].OrgNames = append(
					v.Operators[i].OrgNames,
					o.Name,
				)
			}
		}
	}

	return err
}

// operatorLine counts an operator's sessions.
func operatorLine(
	o store.Operator,
	sessions []store.OperatorSession,
) OperatorLine {
	line := OperatorLine{
		ID:        o.ID,
		Name:      o.Name,
		Role:      o.Role,
		Issuer:    o.Issuer,
		CreatedAt: o.CreatedAt,
	}

	for _, x := range sessions {
		if x.Operator != o.ID {
			continue
		}

		line.Sessions++

		if x.UsedAt.After(line.LastUsed) {
			line.LastUsed = x.UsedAt
		}
	}

	return line
}

// NoLimits lets a credential be used from everywhere, as much as any.
var NoLimits store.CredentialLimits

// HasOperators reports whether anybody can log in.
func (s *Service) HasOperators(ctx context.Context) (has bool, err error) {
	err = s.people().ReadAll(ctx, func(all *store.All) error {
		operators, err := all.Operators(ctx)
		has = len(operators) > 0
		return err
	})

	return has, err
}

// RevokeOf is Revoke of a credential that must be the organisation's.
func (s *Service) RevokeOf(
	ctx context.Context,
	org flex.OrgID,
	username string,
) error {
	var owner flex.OrgID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		c, err := all.CredentialNamed(ctx, username)
		owner = c.Org
		return err
	})

	if err == nil && owner != org {
		err = flex.Fail(
			flex.NotFound,
			"no credential of this organisation is named %q",
			username,
		)
	}

	if err != nil {
		return err
	}

	return s.Revoke(ctx, username)
}

// orgNames are the names of organisations by their ids.
func orgNames(orgs []flex.Org) map[flex.OrgID]string {
	names := make(map[flex.OrgID]string, len(orgs))
	for _, o := range orgs {
		names[o.ID] = o.Name
	}

	return names
}
