package access

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// OperatorSessionLife is how long an operator stays logged in.
const OperatorSessionLife = 12 * time.Hour

// MinOperatorSecret is the least length of an operator's own password in bytes; 15 and more
// are advised.
const MinOperatorSecret = 12

// Operator is a person who runs flexd and has shown who they are.
type Operator struct {
	ID          flex.OperatorID
	Name        string
	Role        OperatorRole
	ConfirmedAt time.Time    // when they last showed who they are
	TwoStep     bool         // whether their logins ask for a code, too
	SomeOrgs    bool         // whether they are of some organisations alone
	Orgs        []flex.OrgID // of which, then; it may be none
	// whether they sign in at the identity provider, which asks for what it asks for
	SSO bool

	session [32]byte // the hash of the session that they were identified by
}

// May reports whether the operator's role has the permission.
func (o Operator) May(p Permission) bool { return o.Role.May(p) }

// AddOperator gives a person their way into the console, with the role. Without a password one
// is made; it is returned here and never again. A name that is taken is a Conflict, an unknown
// role Malformed.
func (s *Service) AddOperator(
	ctx context.Context,
	name string,
	password flex.Secret,
	role OperatorRole,
) (flex.Secret, error) {
	role, err := parseOperatorRole(role)
	if err != nil {
		return "", err
	}

	kept, password, err := newOperatorSecret(name, password)
	if err != nil {
		return "", err
	}

	return password, s.people().WriteAll(ctx, func(all *store.All) error {
		return all.AddOperator(ctx, &store.Operator{
			Name:       name,
			SecretHash: kept,
			Role:       string(role),
		})
	})
}

// SetOperatorPassword replaces an operator's password, as AddOperator sets it, ends their sessions and
// removes their passkeys: each of those lets somebody in without the password.
func (s *Service) SetOperatorPassword(
	ctx context.Context,
	name string,
	password flex.Secret,
) (flex.Secret, error) {
	kept, password, err := newOperatorSecret(name, password)
	if err != nil {
		return "", err
	}

	return password, s.people().WriteAll(ctx, func(all *store.All) error {
		o, err := all.OperatorNamed(ctx, name)
		if err != nil {
			return err
		}

		if err := all.SetOperatorSecret(ctx, o.ID, kept); err != nil {
			return err
		}

		_, err = all.RemovePasskey(ctx, o.ID, nil)

		return err
	})
}

// RemoveOperator lets a person in no more, from this instant on.
func (s *Service) RemoveOperator(ctx context.Context, name string) error {
	return s.people().WriteAll(ctx, func(all *store.All) error {
		o, err := all.OperatorNamed(ctx, name)
		if err != nil {
			return err
		}

		return all.RemoveOperator(ctx, o.ID)
	})
}

// newOperatorSecret is newSecret with the longer password that a person needs.
func newOperatorSecret(
	name string,
	password flex.Secret,
) ([]byte, flex.Secret, error) {
	if password != "" && len(password) < MinOperatorSecret {
		return nil, "", flex.Fail(
			flex.Malformed,
			"an operator's password has at least %d bytes, better 15; leave it out to have a strong one made",
			MinOperatorSecret,
		)
	}

	return newSecret(name, password)
}

// OperatorLogin is what an operator's browser keeps after the password.
type OperatorLogin struct {
	Issued
	// the token opens nothing until LoginOperatorCode has taken a code
	AwaitsCode bool
}

// LoginOperator opens a session for an operator, or its first step where a code is asked for,
// too. An unknown name and a wrong password are the same failure after the same work. After too
// many failures the failure is a *Wait; from says where the attempt came from.
func (s *Service) LoginOperator(
	ctx context.Context,
	name string,
	password flex.Secret,
	from string,
) (OperatorLogin, error) {
	if s.PasswordsShut {
		return OperatorLogin{}, errPasswordsShut
	}

	o, err := s.checkOperator(ctx, name, password, from)
	if err != nil {
		return OperatorLogin{}, err
	}

	var twoStep *store.TwoStep
	err = s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		twoStep, err = all.TwoStepOf(ctx, o.ID)
		return err
	})
	if err != nil {
		return OperatorLogin{}, fmt.Errorf(
			"look up an operator's second step: %w",
			err,
		)
	}

	if twoStep != nil && !twoStep.ConfirmedAt.IsZero() {
		return s.awaitCode(ctx, o, from)
	}

	issued, err := s.openSession(ctx, o, from, s.confirmedByPassword)

	return OperatorLogin{Issued: issued}, err
}

// confirmation is when an operator who logs in counts as having confirmed who they are.
type confirmation func(context.Context, *store.All, flex.OperatorID) (time.Time, error)

// confirmedByPassword is for who has given their password alone: now, or where a passkey is asked for so long
// ago that no process's clock has it within ConfirmedFor.
func (s *Service) confirmedByPassword(
	ctx context.Context,
	all *store.All,
	id flex.OperatorID,
) (time.Time, error) {
	now := s.DB.Now()
	keys, err := all.Passkeys(ctx, id)
	if len(keys) > 0 {
		return now.Add(-OperatorSessionLife), err
	}

	return now, err
}

// confirmedNow is for who has shown a passkey or a code.
func (s *Service) confirmedNow(context.Context, *store.All, flex.OperatorID) (time.Time, error) {
	return s.DB.Now(), nil
}

// openSession writes the login down and opens the session. An operator who was removed, or whose password was changed, since they
// showed who they are is not let in.
func (s *Service) openSession(
	ctx context.Context,
	o store.Operator,
	from string,
	confirmed confirmation,
) (Issued, error) {
	token := newSessionToken()
	expires := s.DB.Now().Add(OperatorSessionLife)
	err := s.Act(ctx, flex.AuditEntry{
		Who:    o.Name,
		Source: from,
		Act:    "log in",
	}, func() error {
		return s.keepSession(ctx, o, store.OperatorSession{
			Hash:      SessionHash(token),
			Operator:  o.ID,
			Source:    from,
			ExpiresAt: expires,
		}, confirmed)
	})

	return Issued{token, expires}, err
}

// keepSession keeps a session of an operator who is as they were when they were asked. Which passkeys they have is
// read here, so that a reset at the same time is before the login or after it.
func (s *Service) keepSession(
	ctx context.Context,
	o store.Operator,
	session store.OperatorSession,
	confirmed confirmation,
) error {
	return s.people().WriteAll(ctx, func(all *store.All) error {
		same, err := all.LockOperator(ctx, o)
		if err != nil {
			return err
		}

		if !same {
			return errLogin
		}

		session.ConfirmedAt, err = confirmed(ctx, all, o.ID)
		if err != nil {
			return err
		}

		return all.AddOperatorSession(ctx, session)
	})
}

func newSessionToken() flex.Secret {
	var random [32]byte
	crand.Read(random[:])
	return flex.Secret(base64.RawURLEncoding.EncodeToString(random[:]))
}

// SessionHash is what the store keeps of a session's token.
func SessionHash(token flex.Secret) [32]byte {
	return sha256.Sum256([]byte(token))
}

// checkOperator returns the operator of the name if the password is theirs, and is errLogin or
// a *Wait otherwise. A failure is written to the audit log.
func (s *Service) checkOperator(
	ctx context.Context,
	name string,
	password flex.Secret,
	from string,
) (store.Operator, error) {
	if len(name) > MaxUsername || len(password) > MaxSecret {
		return store.Operator{}, s.refuseLong(from)
	}

	// Operators and organisations are other namespaces: neither slows the other's logins.
	undo, err := s.brake.attempt("operator\x00"+name, from, s.DB.Now())
	if err != nil {
		return store.Operator{}, err
	}

	o, known, err := s.operatorNamed(ctx, name)
	if err != nil {
		undo()
		return store.Operator{}, fmt.Errorf("look up an operator: %w", err)
	}

	// A name that is nobody's is checked too, so that the answer takes as long as for a wrong password.
	err = s.checkOperatorPassword(ctx, password, o.SecretHash, from, undo)
	if errors.Is(err, errLogin) {
		who := UnknownOperator
		if known {
			who = name
		}

		attempt := flex.AuditEntry{
			Who:    who,
			Source: from,
			Act:    "log in",
		}

		return store.Operator{}, s.Act(ctx, attempt, func() error {
			return errLogin
		})
	}

	if err != nil {
		return store.Operator{}, err
	}

	undo()

	return o, nil
}

// operatorNamed looks up an operator by name. One who is not known, or was removed, has no hash of a
// password.
func (s *Service) operatorNamed(
	ctx context.Context,
	name string,
) (store.Operator, bool, error) {
	var o store.Operator
	err := s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		o, err = all.OperatorNamed(ctx, name)
		return err
	})
	if err != nil && flex.KindOf(err) != flex.NotFound {
		return store.Operator{}, false, err
	}

	known := err == nil && o.RemovedAt.IsZero()
	if !known {
		o.SecretHash = nil
	}

	return o, known, nil
}

// UnknownOperator is written in the audit log for a name that is no operator's. The name itself
// does not: somebody may have typed a password into the wrong field.
const UnknownOperator = "(unknown)"

// refuseLong refuses a name or a password that can be nobody's, and counts it against the
// address.
func (s *Service) refuseLong(from string) error {
	_, err := s.brake.attempt("operator\x00", from, s.DB.Now())
	if err != nil {
		return err
	}

	return errLogin
}

// checkOperatorPassword fails with errLogin if the password is not the one that is kept. One that was right within a
// session's life does not wait in the queue, so that guessers keep nobody out.
func (s *Service) checkOperatorPassword(
	ctx context.Context,
	password flex.Secret,
	kept []byte,
	from string,
	undo func(),
) error {
	now := s.DB.Now()
	if kept != nil && s.verified.has(password, kept, now, OperatorSessionLife) {
		return nil
	}

	err := operatorGuesses.check(ctx, password, kept, from, undo)
	if err == nil {
		s.verified.add(password, kept, now)
	}

	return err
}

// errSession is the failure of a request without a session.
var errSession = flex.Fail(flex.Unauthorized, "log in first")

// IdentifyOperator returns the operator that a session's token speaks for. It asks the store
// each time, so that a session that was ended anywhere is over everywhere.
func (s *Service) IdentifyOperator(
	ctx context.Context,
	token flex.Secret,
) (Operator, error) {
	if token == "" || len(token) > MaxSecret {
		return Operator{}, errSession
	}

	var session store.OperatorSession

	var who Operator

	err := s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		session, err = all.OperatorSession(ctx, SessionHash(token))
		if err != nil {
			return err
		}

		who, err = operatorOf(ctx, all, session)
		return err
	})
	if flex.KindOf(err) == flex.NotFound {
		return Operator{}, errSession
	}
	if err != nil {
		return Operator{}, fmt.Errorf("look up an operator's session: %w", err)
	}
	if !s.admits(session.Issuer) {
		return Operator{}, errSession
	}

	s.noteUse(ctx, session)

	return who, nil
}

// operatorOf reads whose session it is.
func operatorOf(
	ctx context.Context,
	all *store.All,
	s store.OperatorSession,
) (Operator, error) {
	o := Operator{
		ID:          s.Operator,
		Name:        s.Name,
		Role:        OperatorRole(s.Role),
		ConfirmedAt: s.ConfirmedAt,
		SSO:         s.Issuer != "",
		session:     s.Hash,
	}

	twoStep, err := all.TwoStepOf(ctx, s.Operator)
	if err != nil {
		return o, err
	}

	o.TwoStep = twoStep != nil && !twoStep.ConfirmedAt.IsZero()
	o.Orgs, o.SomeOrgs, err = all.OrgsOfOperator(ctx, s.Operator)

	return o, err
}

// lock locks an operator who is logged in until the transaction ends. It is errSession if their session was ended since they were
// identified, as by a new password: whoever had that session gets no further way in by it.
func (o Operator) lock(ctx context.Context, all *store.All) error {
	_, err := all.LockOperator(ctx, store.Operator{ID: o.ID, Name: o.Name})
	if err != nil {
		return err
	}

	_, err = all.OperatorSession(ctx, o.session)
	if flex.KindOf(err) == flex.NotFound {
		return errSession
	}

	return err
}

// useNoted is how exact the last use of a session is kept: a page a second writes once a minute.
const useNoted = time.Minute

// noteUse writes down that a session is used, unless it was written a moment ago. It fails
// silently: a store that takes no writes must not keep an operator from looking at it.
func (s *Service) noteUse(ctx context.Context, session store.OperatorSession) {
	if s.DB.Now().Sub(session.UsedAt) < useNoted {
		return
	}

	_ = s.people().WriteAll(ctx, func(all *store.All) error {
		return all.UseOperatorSession(ctx, session.Hash)
	})
}

// LogoutOperator ends the session of the token.
func (s *Service) LogoutOperator(ctx context.Context, token flex.Secret) error {
	return s.people().WriteAll(ctx, func(all *store.All) error {
		return all.EndOperatorSession(ctx, SessionHash(token))
	})
}

// Act does something in a person's name. It is written in the audit log before it is done,
// and how it ended afterwards, so that nothing is done unseen. Each run of a request that is repeated under its
// Idempotency-Key is an act of its own.
func (s *Service) Act(ctx context.Context, a flex.AuditEntry, do func() error) error {
	return s.ActWithDetail(ctx, a, func() (string, error) { return "", do() })
}

// ActWithDetail is Act for what can say only afterwards what it did, in words.
func (s *Service) ActWithDetail(
	ctx context.Context,
	a flex.AuditEntry,
	do func() (detail string, err error),
) error {
	log := store.Uncounted(ctx)
	err := s.DB.WriteAll(log, func(all *store.All) error {
		return all.BeginAct(log, &a)
	})
	if err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}

	detail, err := do()
	outcome := flex.ActDone

	shown, ok := errors.AsType[*flex.Error](err)
	if ok && shown.Kind != flex.Internal {
		outcome = shown.Error()
	} else if err != nil {
		outcome = "failed"
	}

	// what was done is written down though nobody waits
	late := context.WithoutCancel(log)

	return errors.Join(
		err,
		s.DB.WriteAll(late, func(all *store.All) error {
			return all.EndAct(late, a.ID, outcome, detail)
		}),
	)
}
