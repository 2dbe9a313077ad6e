package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/signin"
	"flexd/internal/store"
)

// SingleSignOn is how operators come in by an identity provider.
type SingleSignOn struct {
	Provider *signin.Provider
	Label    string // what the login page calls the provider
	// by the provider's groups; who is in none of these stays out
	Grants map[string]Grant
}

// Grant is what a group of an identity provider's gives.
type Grant struct {
	Role OperatorRole
	Orgs []string // names of the organisations that it holds in; all if empty
}

// granted is what somebody's groups give them together.
type granted struct {
	role  OperatorRole // "" for nothing
	group string       // that gives it, or the last of them
	orgs  OperatorOrgs
}

// of returns the strongest role that the groups give, in the organisations for which they give that
// one. Where groups give both that of operators and that of finance, it is finance's.
func (s *SingleSignOn) of(groups []string) granted {
	var g granted
	for _, candidate := range OperatorRoles() {
		for _, group := range groups {
			grant, known := s.Grants[group]
			if known && grant.Role == candidate {
				g.add(group, grant)
			}
		}
	}

	return g
}

// add adds what another group gives, which is no weaker role than any before.
func (g *granted) add(group string, grant Grant) {
	if grant.Role != g.role {
		g.orgs = OperatorOrgs{}
	}

	g.role, g.group = grant.Role, group
	g.orgs.Every = g.orgs.Every || len(grant.Orgs) == 0
	g.orgs.Names = append(g.orgs.Names, grant.Orgs...)
}

// localName is how people of this machine are named in the audit log, which nobody else is.
const localName = "command line"

// checkPerson refuses a person whose name in the audit log would not be unique.
func checkPerson(p signin.Person) error {
	if p.Subject == "" || len(p.Subject) > MaxSubject {
		return flex.Fail(
			flex.Forbidden,
			"the identity provider gave no name of its own for you (sub) of 1 to %d bytes",
			MaxSubject,
		)
	}

	name := strings.TrimSpace(p.Name)
	if name == "" || name != p.Name || len(name) > MaxUsername {
		return flex.Fail(
			flex.Forbidden,
			"the identity provider gave no name for you of 1 to %d bytes: --sso-name-claim says which claim has it",
			MaxUsername,
		)
	}

	if name == UnknownOperator || strings.HasPrefix(name, localName) {
		return flex.Fail(flex.Forbidden, "%q is no name for an operator", name)
	}

	return nil
}

// MaxSubject is the longest name that a provider has for somebody, in bytes, by OpenID Connect.
const MaxSubject = 255

// SignInOperator opens a session for whom the identity provider's answer to the attempt speaks
// of. Their groups give the role, at each sign-in again; who has none is Forbidden, and so is who
// was removed. An answer that is not right, or was taken before, is Unauthorized. Who is new here
// becomes an operator. All of it is in the audit log.
func (s *Service) SignInOperator(
	ctx context.Context,
	a signin.Attempt,
	answer signin.Answer,
	from string,
) (Issued, error) {
	if s.SSO == nil {
		return Issued{}, flex.Fail(
			flex.NotFound,
			"operators come in by a password here",
		)
	}

	person, err := s.person(ctx, a, answer, from)
	if err != nil {
		return Issued{}, err
	}

	name, err := s.knownAs(ctx, person)
	if err != nil {
		return Issued{}, err
	}

	token := newSessionToken()
	expires := s.DB.Now().Add(OperatorSessionLife)

	err = s.ActWithDetail(
		ctx,
		flex.AuditEntry{
			Who:    name,
			Source: from,
			Act:    "log in",
		},
		func() (string, error) {
			session := store.OperatorSession{
				Hash:        SessionHash(token),
				Source:      from,
				ExpiresAt:   expires,
				ConfirmedAt: confirmedAt(person, s.DB.Now()),
			}

			given := s.SSO.of(person.Groups)

			err := s.people().WriteAll(ctx, func(all *store.All) error {
				return s.signIn(ctx, all, person, given, session)
			})

			if err == nil && given.role == "" {
				err = errNoGroup
			}

			return given.text(), err
		},
	)

	return Issued{token, expires}, err
}

// knownAs is what the person is called here: an operator keeps the name that they came with, whatever they call themselves at
// the provider since, so that nobody is written down as somebody else.
func (s *Service) knownAs(ctx context.Context, p signin.Person) (string, error) {
	var o *store.Operator
	err := s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		o, err = all.OperatorOf(ctx, s.SSO.Provider.Issuer(), p.Subject)
		return err
	})
	if err != nil || o == nil {
		return p.Name, err
	}

	return o.Name, nil
}

// person is who the answer to the attempt speaks of. A failure is in the audit log, and slows
// down whoever tries again.
func (s *Service) person(
	ctx context.Context,
	a signin.Attempt,
	answer signin.Answer,
	from string,
) (signin.Person, error) {
	undo, err := s.brake.attempt("sign in\x00", from, s.DB.Now())
	if err != nil {
		return signin.Person{}, err
	}

	person, err := s.SSO.Provider.Person(ctx, a, answer)
	if flex.KindOf(err) == flex.Unavailable { // nobody was refused
		undo()
		return person, err
	}

	if err == nil {
		err = checkPerson(person)
	}

	if err != nil {
		return person, s.Act(
			ctx,
			flex.AuditEntry{
				Who:    UnknownOperator,
				Source: from,
				Act:    "log in",
			},
			func() error {
				return err
			},
		)
	}

	undo()

	return person, nil
}

// confirmedAt is when the person showed who they are: long ago if the provider does not say,
// and never after now, however its clock goes.
func confirmedAt(p signin.Person, now time.Time) time.Time {
	if p.AuthenticatedAt.IsZero() {
		return time.Unix(0, 0)
	}
	if p.AuthenticatedAt.After(now) {
		return now
	}

	return p.AuthenticatedAt
}

// signIn takes the answer once, and writes down who the person is, what they may do, and their
// session. Who has no role any more gets none, and loses the sessions that they have.
func (s *Service) signIn(
	ctx context.Context,
	all *store.All,
	p signin.Person,
	given granted,
	session store.OperatorSession,
) error {
	taken, err := all.TakeSignIn(ctx, p.Nonce, p.ExpiresAt)
	if err != nil {
		return err
	}
	if !taken {
		return flex.Fail(
			flex.Unauthorized,
			"this sign-in was taken before: begin again",
		)
	}

	o, err := all.OperatorOf(ctx, s.SSO.Provider.Issuer(), p.Subject)
	if err != nil {
		return err
	}

	if o != nil && !o.RemovedAt.IsZero() {
		return flex.Fail(
			flex.Forbidden,
			"%s was removed from the operators",
			o.Name,
		)
	}

	if given.role == "" && o != nil {
		return all.EndOperatorSessions(ctx, o.ID)
	}

	if given.role == "" {
		return nil
	}

	session.Operator, err = s.keepPerson(ctx, all, o, p, given.role)
	if err != nil {
		return err
	}

	if err := given.keepOrgs(ctx, all, session.Operator); err != nil {
		return err
	}

	return all.AddOperatorSession(ctx, session)
}

var errNoGroup = flex.Fail(
	flex.Forbidden,
	"none of your groups has a role here: an administrator of the identity provider can put you into one that has",
)

// text says what is given and by which group, for the audit log.
func (g *granted) text() string {
	if g.role == "" {
		return ""
	}
	return fmt.Sprintf("%s, by the group %q", g.role, g.group)
}

// keepOrgs says whose operator the person is. A name that is no organisation's lets nobody in.
func (g *granted) keepOrgs(
	ctx context.Context,
	all *store.All,
	id flex.OperatorID,
) error {
	if g.orgs.Every {
		return all.SetOperatorOrgs(ctx, id, true, nil)
	}

	orgs, err := orgsNamed(ctx, all, g.orgs.Names)
	if flex.KindOf(err) == flex.NotFound {
		return flex.Fail(
			flex.Forbidden,
			"%v: --sso-role names one that is not there",
			err,
		)
	}
	if err != nil {
		return err
	}

	return all.SetOperatorOrgs(ctx, id, false, orgs)
}

// keepPerson makes the person an operator unless they are one, with the role.
func (s *Service) keepPerson(
	ctx context.Context,
	all *store.All,
	o *store.Operator,
	p signin.Person,
	role OperatorRole,
) (flex.OperatorID, error) {
	if o == nil {
		return s.newPerson(ctx, all, p, role)
	}

	if o.Role == string(role) {
		return o.ID, nil
	}

	return o.ID, all.SetOperatorRole(ctx, o.ID, string(role))
}

// newPerson makes the person an operator. Of two sign-ins at once the second finds the operator whom the first made.
func (s *Service) newPerson(
	ctx context.Context,
	all *store.All,
	p signin.Person,
	role OperatorRole,
) (flex.OperatorID, error) {
	o := store.Operator{
		Name:       p.Name,
		SecretHash: []byte{},
		Role:       string(role),
		Issuer:     s.SSO.Provider.Issuer(),
		Subject:    p.Subject,
	}

	taken := all.AddOperator(ctx, &o)
	if flex.KindOf(taken) != flex.Conflict {
		return o.ID, taken
	}

	same, err := all.OperatorOf(ctx, o.Issuer, o.Subject)
	if err != nil {
		return o.ID, err
	}
	if same == nil {
		return o.ID, nameTaken(taken, p)
	}

	return same.ID, nil
}

// nameTaken says what to do about a name that an operator has already.
func nameTaken(err error, p signin.Person) error {
	if flex.KindOf(err) != flex.Conflict {
		return err
	}
	return flex.Fail(
		flex.Conflict,
		"an operator named %q exists already: if that is you, flexd operator tie %q %q has you sign in here",
		p.Name,
		p.Name,
		p.Subject,
	)
}

// LinkIdentity has an operator with a password sign in at an identity provider from now on, as
// the subject. Their password and sessions end. A subject that is another's is a Conflict.
func (s *Service) LinkIdentity(
	ctx context.Context,
	name, issuer, subject string,
) error {
	if err := signin.CheckIssuer(issuer); err != nil {
		return err
	}
	if subject == "" || len(subject) > MaxSubject {
		return flex.Fail(
			flex.Malformed,
			"a subject has 1 to %d bytes",
			MaxSubject,
		)
	}

	return s.people().WriteAll(ctx, func(all *store.All) error {
		o, err := all.OperatorNamed(ctx, name)
		if err != nil {
			return err
		}

		other, err := all.OperatorOf(ctx, issuer, subject)
		if err != nil {
			return err
		}
		if other != nil && other.ID != o.ID {
			return flex.Fail(
				flex.Conflict,
				"that subject is %s already",
				other.Name,
			)
		}

		return all.LinkIdentity(ctx, o.ID, issuer, subject)
	})
}

// admits reports whether sessions of operators of the issuer, "" for a password, are of use.
func (s *Service) admits(issuer string) bool {
	if issuer == "" {
		return !s.PasswordsShut
	}
	return s.SSO != nil && s.SSO.Provider.Issuer() == issuer
}

var errPasswordsShut = flex.Fail(
	flex.Forbidden,
	"passwords open nothing here: sign in at the identity provider. flexd serve without --operators-by-sso-alone lets them again",
)
