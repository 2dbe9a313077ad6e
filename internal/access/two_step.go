package access

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// The second step of an operator's login is a code of the minute from an app, by RFC 6238: six
// digits, SHA-1, steps of 30 seconds, one step of tolerance either way. No code is taken twice.
// Who has lost the app uses a recovery code, each once.
const (
	codeStep   = 30 * time.Second
	codeDigits = otp.DigitsSix
	codeSlack  = 1 // steps that a clock may be off

	// CodeWait is how long a login waits for its code.
	CodeWait = 5 * time.Minute
	// CodesMax is how many codes in a row may be wrong within CodesWindow, from anywhere.
	CodesMax    = 20
	CodesWindow = time.Hour

	// RecoveryCodes is how many codes of the last resort an operator is given.
	RecoveryCodes = 10
)

var (
	// ErrCode says that a code of an operator's app is wrong.
	ErrCode = flex.Fail(
		flex.Unauthorized,
		"That code is not right, or was used before",
	)
	// ErrCodes says that too many were wrong.
	ErrCodes = flex.Fail(
		flex.TooMany,
		"too many wrong codes: wait an hour, or have an administrator run flexd operator reset-two-step",
	)
)

// awaitCode opens a session that opens nothing but the second step.
func (s *Service) awaitCode(
	ctx context.Context,
	o store.Operator,
	from string,
) (OperatorLogin, error) {
	token := newSessionToken()
	expires := s.DB.Now().Add(CodeWait)
	err := s.keepSession(ctx, o, store.OperatorSession{
		Hash:       SessionHash(token),
		Operator:   o.ID,
		Source:     from,
		ExpiresAt:  expires,
		AwaitsCode: true,
	}, s.confirmedNow)

	return OperatorLogin{Issued{token, expires}, true}, err
}

// LoginOperatorCode is the second step of the login that the token is of: it takes a code, or a
// recovery code, and opens the session. A wrong code is Unauthorized and written to the audit
// log; too many are TooMany, whoever tries them.
func (s *Service) LoginOperatorCode(
	ctx context.Context,
	token flex.Secret,
	code, from string,
) (Issued, error) {
	if token == "" || len(token) > MaxSecret {
		return Issued{}, errSession
	}

	session, o, err := s.awaiting(ctx, token)

	if flex.KindOf(err) == flex.NotFound {
		return Issued{}, errSession
	}

	if err != nil {
		return Issued{}, fmt.Errorf("look up an operator's login: %w", err)
	}

	if !s.admits(session.Issuer) {
		return Issued{}, errSession
	}

	err = s.takeCode(ctx, session.Operator, code)
	if errors.Is(err, ErrCode) {
		return Issued{}, s.Act(
			ctx,
			flex.AuditEntry{
				Who:    session.Name,
				Source: from,
				Act:    "log in",
			},
			func() error {
				return ErrCode
			},
		)
	}

	if err != nil {
		return Issued{}, err
	}

	err = s.people().WriteAll(ctx, func(all *store.All) error {
		return all.EndOperatorSession(ctx, session.Hash)
	})

	if err != nil {
		return Issued{}, err
	}

	return s.openSession(ctx, o, from, s.confirmedNow)
}

// awaiting is the first step of the login that a token is of, and the operator as they were then.
func (s *Service) awaiting(
	ctx context.Context,
	token flex.Secret,
) (store.OperatorSession, store.Operator, error) {
	var session store.OperatorSession
	var o store.Operator
	err := s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		session, err = all.AwaitingSession(ctx, SessionHash(token))
		if err != nil {
			return err
		}

		o, err = all.OperatorNamed(ctx, session.Name)

		return err
	})

	return session, o, err
}

// takeCode uses up a code of the operator's. The count of tries stays when the code is wrong.
func (s *Service) takeCode(
	ctx context.Context,
	id flex.OperatorID,
	code string,
) error {
	code = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
	taken := false

	err := s.people().WriteAll(ctx, func(all *store.All) error {
		may, err := all.CountCode(ctx, id, CodesWindow, CodesMax)
		if err != nil {
			return err
		}
		if !may {
			return ErrCodes
		}

		taken, err = useCode(ctx, all, id, code)
		if err != nil || !taken {
			return err
		}

		return all.CodeWasRight(ctx, id)
	})
	if err == nil && !taken {
		return ErrCode
	}

	return err
}

// useCode uses up the step of time that the code is of, or the recovery code, and reports
// whether there was such a one.
func useCode(
	ctx context.Context,
	all *store.All,
	id flex.OperatorID,
	code string,
) (bool, error) {
	t, err := all.TwoStepOf(ctx, id)
	if err != nil || t == nil {
		return false, err
	}

	newest := all.Now().Unix() / int64(codeStep/time.Second)
	for step := newest - codeSlack; step <= newest+codeSlack; step++ {
		right, err := codeOf(t.Secret, step)
		if err != nil {
			return false, err
		}

		if subtle.ConstantTimeCompare([]byte(code), []byte(right)) == 1 {
			return all.TakeCodeStep(ctx, id, step)
		}
	}

	return all.TakeRecovery(ctx, id, recoveryHash(code))
}

// codeOf is the code of a step since 1970.
func codeOf(secret flex.Secret, step int64) (string, error) {
	code, err := hotp.GenerateCodeCustom(
		secret.Reveal(),
		uint64(step),
		hotp.ValidateOpts{
			Digits:    codeDigits,
			Algorithm: otp.AlgorithmSHA1,
		},
	)
	if err != nil {
		return "", fmt.Errorf("make an operator's code: %w", err)
	}

	return code, nil
}

func recoveryHash(code string) [32]byte {
	return sha256.Sum256([]byte("flexd recovery code\n" + code))
}

// TwoStepSetup is what an app is given to make codes with.
type TwoStepSetup struct {
	Secret flex.Secret // base32
	URL    string      // otpauth://, as apps read it from a picture
}

// BeginTwoStep makes a secret for an operator who is logged in. Logins ask for codes only after
// ConfirmTwoStep. Where they do already, it is a Conflict: that one is removed first.
func (s *Service) BeginTwoStep(
	ctx context.Context,
	who Operator,
) (TwoStepSetup, error) {
	if who.SSO {
		return TwoStepSetup{}, flex.Fail(
			flex.Conflict,
			"you sign in at the identity provider: set up a second factor there",
		)
	}

	if who.TwoStep {
		return TwoStepSetup{}, errTwoStep
	}

	key, err := totp.Generate(totp.GenerateOpts{
		Issuer:      "flexd",
		AccountName: who.Name,
		Period:      uint(codeStep / time.Second),
		Digits:      codeDigits,
		Algorithm:   otp.AlgorithmSHA1,
	})

	if err != nil {
		return TwoStepSetup{}, fmt.Errorf(
			"make an operator's second step: %w",
			err,
		)
	}

	setup := TwoStepSetup{
		Secret: flex.Secret(key.Secret()),
		URL:    key.URL(),
	}

	return setup, s.people().WriteAll(ctx, func(all *store.All) error {
		return beginTwoStep(ctx, all, who, setup.Secret)
	})
}

// errTwoStep is said to who sets up the code that their logins ask for.
var errTwoStep = flex.Fail(
	flex.Conflict,
	"your logins ask for a code already: remove it first",
)

// beginTwoStep keeps a secret unless logins ask for a code. That is asked again with the operator locked: the request may have begun
// before another one confirmed the code.
func beginTwoStep(
	ctx context.Context,
	all *store.All,
	who Operator,
	secret flex.Secret,
) error {
	if err := who.lock(ctx, all); err != nil {
		return err
	}

	t, err := all.TwoStepOf(ctx, who.ID)
	if err != nil {
		return err
	}
	if t != nil && !t.ConfirmedAt.IsZero() {
		return errTwoStep
	}

	return all.BeginTwoStep(ctx, who.ID, secret)
}

// ConfirmTwoStep takes the first code, and has logins ask for one from then on. It returns the
// recovery codes, here and never again. A wrong code is Unauthorized.
func (s *Service) ConfirmTwoStep(
	ctx context.Context,
	who Operator,
	code string,
) ([]string, error) {
	if who.TwoStep {
		return nil, flex.Fail(
			flex.Conflict,
			"your logins ask for a code already",
		)
	}

	if err := s.takeCode(ctx, who.ID, code); err != nil {
		return nil, err
	}

	codes := make([]string, 0, RecoveryCodes)
	hashes := make([][32]byte, 0, RecoveryCodes)

	for range RecoveryCodes {
		var random [10]byte
		crand.Read(random[:])
		text := base32.StdEncoding.EncodeToString(random[:])
		hashes = append(hashes, recoveryHash(text))
		codes = append(
			codes,
			strings.Join(slices.Collect(chunks(text, 4)), "-"),
		)
	}

	err := s.people().WriteAll(ctx, func(all *store.All) error {
		return confirmTwoStep(ctx, all, who, hashes)
	})
	if err != nil {
		return nil, err
	}

	return codes, nil
}

// confirmTwoStep has logins ask for codes of the secret that one was just taken of.
func confirmTwoStep(
	ctx context.Context,
	all *store.All,
	who Operator,
	recovery [][32]byte,
) error {
	// No other secret takes its place until it is confirmed.
	if err := who.lock(ctx, all); err != nil {
		return err
	}

	confirmed, err := all.ConfirmTwoStep(ctx, who.ID, recovery)
	if err == nil && !confirmed {
		err = flex.Fail(
			flex.Conflict,
			"another secret was made since, or it was removed: begin again, and enter a code of the newest one",
		)
	}

	return err
}

// chunks yields the text in pieces of n bytes.
func chunks(text string, n int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			size := min(n, len(text))
			if !yield(text[:size]) {
				return
			}

			text = text[size:]
		}
	}
}

// RemoveTwoStep has an operator's logins ask for no code any more.
func (s *Service) RemoveTwoStep(ctx context.Context, name string) error {
	return s.people().WriteAll(ctx, func(all *store.All) error {
		o, err := all.OperatorNamed(ctx, name)
		if err != nil {
			return err
		}
		return all.RemoveTwoStep(ctx, o.ID)
	})
}

// ResetFactors forgets an operator's code and passkeys, as when the devices are lost, and ends their sessions: whoever
// has a device may be logged in on it. Their password stays.
func (s *Service) ResetFactors(ctx context.Context, name string) error {
	return s.people().WriteAll(ctx, func(all *store.All) error {
		o, err := all.OperatorNamed(ctx, name)
		if err != nil {
			return err
		}

		// A login under way is before this, and its session ends, or after it.
		if _, err := all.LockOperator(ctx, o); err != nil {
			return err
		}

		if _, err := all.RemovePasskey(ctx, o.ID, nil); err != nil {
			return err
		}

		if err := all.RemoveTwoStep(ctx, o.ID); err != nil {
			return err
		}

		return all.EndOperatorSessions(ctx, o.ID)
	})
}

// RecoveryLeft counts an operator's unused recovery codes.
func (s *Service) RecoveryLeft(
	ctx context.Context,
	id flex.OperatorID,
) (int, error) {
	var n int
	err := s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.RecoveryLeft(ctx, id)
		return err
	})

	return n, err
}

// TwoStepOperators returns the ids of the operators whose logins ask for a code.
func (s *Service) TwoStepOperators(ctx context.Context) ([]flex.OperatorID, error) {
	var ids []flex.OperatorID
	err := s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		ids, err = all.TwoStepOperators(ctx)
		return err
	})

	return ids, err
}
