package access

import (
	"context"
	"errors"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// ConfirmedFor is how long an operator counts as having shown who they are: acts on money and
// on access ask for it again after it.
const ConfirmedFor = 15 * time.Minute

// Confirmed reports whether the operator showed who they are a short while ago.
func (o Operator) Confirmed(now time.Time) bool {
	return now.Sub(o.ConfirmedAt) < ConfirmedFor
}

// SecondFactor is what an operator shows beside, or in place of, their password.
type SecondFactor string

// The second factors of operators.
const (
	NoSecondFactor SecondFactor = ""
	CodeOfApp      SecondFactor = "code"    // beside the password, or a passkey in place of both
	PasskeyAlone   SecondFactor = "passkey" // in place of the password
)

var errPasskeyDue = flex.Fail(
	flex.Forbidden,
	"You have a passkey: confirm with it. The password alone is not enough",
)

// SecondFactorOf returns what an operator shows beside the password when they confirm who they are. A
// passkey counts where there is no code: whoever knows the password alone does not have it.
func (s *Service) SecondFactorOf(ctx context.Context, who Operator) (SecondFactor, error) {
	if who.TwoStep {
		return CodeOfApp, nil
	}

	keys, err := s.PasskeysOf(ctx, who.ID)
	if len(keys) > 0 {
		return PasskeyAlone, err
	}

	return NoSecondFactor, err
}

// ConfirmOperator has an operator who is logged in show again who they are: by their password, and a
// code where they have an app for codes. A wrong password is Unauthorized and counts as a failed login,
// a wrong code likewise; after too many the failure is a *Wait, or TooMany. Whoever has a passkey and
// no app confirms by ConfirmOperatorPasskey alone: a password is Forbidden.
func (s *Service) ConfirmOperator(
	ctx context.Context,
	token, password flex.Secret,
	code, from string,
) error {
	who, err := s.IdentifyOperator(ctx, token)
	if err != nil {
		return err
	}

	factor, err := s.SecondFactorOf(ctx, who)
	if err != nil {
		return err
	}

	if factor == PasskeyAlone {
		return errPasskeyDue
	}

	_, err = s.checkOperator(ctx, who.Name, password, from)
	if err != nil {
		return err
	}

	if factor == CodeOfApp {
		err = s.confirmCode(ctx, who, code, from)
	}

	if err != nil {
		return err
	}

	return s.people().WriteAll(ctx, func(all *store.All) error {
		return all.ConfirmOperatorSession(ctx, SessionHash(token))
	})
}

// confirmCode uses up a code. A wrong one is in the audit log.
func (s *Service) confirmCode(
	ctx context.Context,
	who Operator,
	code, from string,
) error {
	err := s.takeCode(ctx, who.ID, code)
	if !errors.Is(err, ErrCode) {
		return err
	}

	return s.notConfirmed(ctx, who, from, ErrCode)
}

// notConfirmed keeps in the audit log that an operator who is logged in did not show who they are, and
// returns why.
func (s *Service) notConfirmed(
	ctx context.Context,
	who Operator,
	from string,
	why error,
) error {
	attempt := flex.AuditEntry{
		Who:    who.Name,
		Source: from,
		Act:    "confirm who it is",
	}

	return s.Act(ctx, attempt, func() error { return why })
}
