package console

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/png"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/web"
)

// accountPage shows how the operator logs in, and lets them change that.
type accountPage struct {
	Name        string              `json:"name"`
	Role        access.OperatorRole `json:"role"`
	Permissions []access.Permission `json:"permissions"`
	Sessions    []access.Session    `json:"sessions"`
	// whether logins ask for a code
	TwoStep bool `json:"two_step"`
	// unused ones, how many
	Recovery int `json:"recovery_codes"`
	// whether everybody's have to
	Must bool `json:"two_step_by_rule"`
	// at the identity provider
	SSO      bool             `json:"signs_in_elsewhere"`
	Passkeys []access.Passkey `json:"passkeys"`
	// whether the browser can make one here
	MayHavePasskeys bool `json:"-"`
}

func (s *Server) account(r *request) (view, error) {
	sessions, err := s.Access.SessionsOf(
		r.Context(),
		r.operator.ID,
		s.sessionOf(r.Request),
	)

	p := accountPage{
		Name:        r.operator.Name,
		Role:        r.operator.Role,
		Permissions: r.operator.Role.Permissions(),
		Sessions:    sessions,
		TwoStep:     r.operator.TwoStep,
		Must:        s.TwoStep,
		SSO:         r.operator.SSO,

		MayHavePasskeys: s.Access.HasPasskeys(s.passkeySite(r)),
	}

	if err != nil {
		return view{}, err
	}

	p.Passkeys, err = s.Access.PasskeysOf(r.Context(), r.operator.ID)
	if err != nil {
		return view{}, err
	}

	p.Recovery, err = s.Access.RecoveryLeft(r.Context(), r.operator.ID)

	return view{
		page:   "account",
		title:  "Your account",
		data:   p,
		record: p,
	}, err
}

// endOwnSessions logs the operator out everywhere, here too.
func (s *Server) endOwnSessions(r *request) (view, error) {
	err := s.act(
		r,
		access.Action{
			Act:     "end operator's sessions",
			Subject: r.operator.Name,
		},
		func() error {
			return s.Access.EndOperatorSessions(r.Context(), r.operator.Name)
		},
	)

	s.setSession(r.w, r.Request, "")

	return view{to: "/console/login"}, err
}

// twoStepPage is the set-up of an operator's second step: first the secret, then the recovery
// codes.
type twoStepPage struct {
	Secret   string
	Picture  template.URL // of the secret, for an app's camera
	Fault    string
	Recovery []string
}

// pictureSide is the side of the picture in pixels.
const pictureSide = 220

func (s *Server) beginTwoStep(r *request) (view, error) {
	var setup access.TwoStepSetup
	err := s.act(
		r,
		access.Action{
			Act:     "begin a second step",
			Subject: r.operator.Name,
		},
		func() error {
			var err error
			setup, err = s.Access.BeginTwoStep(r.Context(), r.operator)
			return err
		},
	)

	if err != nil {
		return view{}, err
	}

	picture, err := pictureOf(setup.URL)
	if err != nil {
		return view{}, err
	}

	return twoStepView(twoStepPage{
		Secret:  setup.Secret.Reveal(),
		Picture: picture,
	}), nil
}

func twoStepView(p twoStepPage) view {
	return view{
		page:   "twostep",
		title:  "A code for your logins",
		crumbs: []crumb{{"Your account", accountPath}},
		data:   p,
	}
}

// pictureOf is a QR code of the text, as the address of a picture.
func pictureOf(text string) (template.URL, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return "", fmt.Errorf("draw a code: %w", err)
	}

	code, err = barcode.Scale(code, pictureSide, pictureSide)
	if err != nil {
		return "", fmt.Errorf("draw a code: %w", err)
	}

	var b bytes.Buffer
	if err := png.Encode(&b, code); err != nil {
		return "", fmt.Errorf("draw a code: %w", err)
	}

	return template.URL("data:image/png;base64," +
		base64.StdEncoding.EncodeToString(b.Bytes())), nil
}

// finishTwoStep checks the first code of the app, and shows the recovery codes once.
func (s *Server) finishTwoStep(r *request) (view, error) {
	p := twoStepPage{}
	err := s.act(
		r,
		access.Action{
			Act:     "set up a second step",
			Subject: r.operator.Name,
		},
		func() error {
			var err error
			p.Recovery, err = s.Access.ConfirmTwoStep(
				r.Context(),
				r.operator,
				r.PostFormValue("code"),
			)

			return err
		},
	)

	kind := flex.KindOf(err)
	if kind == flex.Unauthorized || kind == flex.TooMany {
		p.Fault = sentence(err.Error())
		v := twoStepView(p)
		v.status = web.StatusOf(kind)

		return v, nil
	}

	return twoStepView(p), err
}

func (s *Server) removeTwoStep(r *request) (view, error) {
	err := s.act(
		r,
		access.Action{
			Act:     "remove a second step",
			Subject: r.operator.Name,
		},
		func() error {
			return s.Access.RemoveTwoStep(r.Context(), r.operator.Name)
		},
	)

	return view{to: accountPath + "?done=codeless"}, err
}
