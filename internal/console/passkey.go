package console

import (
	"errors"
	"net/url"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/web"
)

// The form fields that a script fills: a signature by the browser's passkey, and a new
// passkey. The new passkey is a part of its act. If the act asks the operator to identify
// again, the passkey is sent with that form too.
const (
	passkeyField    = "confirm_passkey"
	newPasskeyField = "new_passkey"
)

// passkeySite is the origin that the browser has this page from.
func (s *Server) passkeySite(r *request) access.PasskeySite {
	if u, err := url.Parse(s.PublicURL); err == nil && u.Scheme == "https" {
		return access.PasskeySite(u.Scheme + "://" + u.Host)
	}

	scheme := "http://"
	if web.HTTPS(r.Request) {
		scheme = "https://"
	}

	return access.PasskeySite(scheme + r.Host)
}

// passkeyFault says why a passkey was refused; any other error is returned.
func passkeyFault(r *request, err error) (string, error) {
	if _, ok := errors.AsType[*access.Wait](err); ok {
		return loginFault(r, err)
	}
	if flex.KindOf(err) == flex.Unauthorized || flex.KindOf(err) == flex.Forbidden {
		return sentence(err.Error()), nil
	}

	return "", err
}

// loginPasskey is the login by a passkey alone.
func (s *Server) loginPasskey(r *request) (view, error) {
	f := loginForm{Next: r.PostFormValue("next")}

	issued, err := s.Access.LoginOperatorPasskey(
		r.Context(),
		s.passkeySite(r),
		r.PostFormValue(passkeyField),
		r.from,
	)
	if err == nil {
		s.setSession(r.w, r.Request, issued.Token)
		return view{to: ownPath(f.Next)}, nil
	}

	kind := flex.KindOf(err)
	f.Fault, err = passkeyFault(r, err)
	if err != nil {
		return view{}, err
	}

	v, err := s.loginView(r, f)
	v.status = web.StatusOf(kind)

	return v, err
}

// passkeyPage makes the browser create a passkey.
type passkeyPage struct{ Options, Name, Fault string }

func (s *Server) beginPasskey(r *request) (view, error) {
	return s.passkeyView(r, passkeyPage{})
}

func (s *Server) passkeyView(r *request, p passkeyPage) (view, error) {
	options, err := s.Access.BeginPasskey(r.Context(), r.operator, s.passkeySite(r))
	p.Options = string(options)

	return view{
		page:   "passkey",
		title:  "A passkey",
		crumbs: []crumb{{"Your account", accountPath}},
		data:   p,
	}, err
}

// addPasskey stores the passkey that the browser made.
func (s *Server) addPasskey(r *request) (view, error) {
	p := passkeyPage{Name: r.PostFormValue("name")}
	err := s.act(
		r,
		access.Action{Act: "add a passkey", Subject: r.operator.Name},
		func() error {
			return s.Access.AddPasskey(
				r.Context(),
				r.operator,
				s.passkeySite(r),
				p.Name,
				r.PostFormValue(newPasskeyField),
			)
		},
	)
	if err == nil {
		return view{to: accountPath + "?done=passkey"}, nil
	}

	kind := flex.KindOf(err)
	if kind != flex.Unauthorized && kind != flex.Malformed {
		return view{}, err
	}

	p.Fault = sentence(err.Error())
	v, err := s.passkeyView(r, p)
	v.status = web.StatusOf(kind)

	return v, err
}

func (s *Server) removePasskey(r *request) (view, error) {
	err := s.act(
		r,
		access.Action{Act: "remove a passkey", Subject: r.operator.Name},
		func() error {
			return s.Access.RemovePasskey(r.Context(), r.operator, r.PostFormValue("passkey"))
		},
	)

	return view{to: accountPath + "?done=keyless"}, err
}
