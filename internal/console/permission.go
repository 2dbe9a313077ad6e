package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// permission returns the permission that the route needs. An action that names none needs the
// highest one, so that a forgotten name gives nobody access.
func (rt route) permission() access.Permission {
	if rt.needs != "" {
		return rt.needs
	}

	if strings.HasPrefix(rt.pattern, "POST ") {
		return access.Administer
	}

	return access.See
}

// stepUp lists the permissions whose actions ask the operator to authenticate again, unless
// that was done recently.
var stepUp = []access.Permission{access.Pay, access.Administer}

// The form fields with which the operator authenticates again, besides passkeyField.
const (
	passwordField = "confirm_password"
	codeField     = "confirm_code"
)

var confirmFields = []string{passwordField, codeField, passkeyField}

// The pages for operators who must still set up their second factor, if everybody needs one.
const (
	accountPath = Root + "/account"
	logoutPath  = Root + "/logout"
)

// mustSetUp redirects to the page where the second factor is set up.
func (s *Server) mustSetUp(r *request) (view, error) {
	if r.isPlain() || r.Method != http.MethodGet {
		return view{}, flex.Fail(
			flex.Forbidden,
			"set up a code for your logins first, on the page of your account",
		)
	}

	return view{to: accountPath + "?done=twostep"}, nil
}

// admit checks that the operator may use the route. If it returns a page, that is the form for
// authenticating again, and the action must wait for it.
func (s *Server) admit(rt route, r *request) (view, error) {
	needs := rt.permission()
	if !r.operator.May(needs) {
		return view{}, flex.Fail(
			flex.Forbidden,
			"%s has the role %s here, and this takes a role that may %s: an administrator can give it, on the page Operators or by flexd operator role",
			r.operator.Name,
			r.operator.Role,
			needs,
		)
	}

	if err := reaches(rt, r); err != nil {
		return view{}, err
	}

	owesCode := s.TwoStep && !r.operator.TwoStep && !r.operator.SSO
	setsUp := strings.HasPrefix(r.URL.Path, accountPath) ||
		r.URL.Path == logoutPath

	if owesCode && !setsUp {
		return s.mustSetUp(r)
	}

	mustConfirm := rt.confirm || slices.Contains(stepUp, needs)
	if !mustConfirm || r.Method != http.MethodPost ||
		r.operator.Confirmed(s.Operations.Now()) {
		return view{}, nil
	}

	if r.operator.SSO {
		return s.confirmAtProvider(r)
	}

	return s.confirm(r)
}

// reaches checks that the route's object belongs to the operator's organisations. An object
// with an id of its own is checked by the services, which search only in these.
func reaches(rt route, r *request) error {
	if rt.unparted && r.operator.SomeOrgs {
		return flex.Fail(
			flex.Forbidden,
			"this is of all organisations, and %s is an operator of some: an administrator can change that by flexd operator orgs",
			r.operator.Name,
		)
	}

	text := r.PathValue("org")
	if text == "" {
		return nil
	}

	var org flex.OrgID
	if err := readID(&org, text, "organisation"); err != nil {
		return err
	}

	if !r.operator.Reaches(org) {
		return flex.Fail(flex.NotFound, "there is no organisation %s", org)
	}

	return nil
}

// confirmPage asks the operator to authenticate again, and carries the action's form.
type confirmPage struct {
	Path   string
	Fault  string
	Fields []formField
	Factor access.SecondFactor // beside the password
	// what a browser is to sign with a passkey of the operator's, if they have one
	Passkey string
	// in place of the form, for who has no password here
	SignIn *signInLink
}

type formField struct{ Name, Value string }

// confirm checks the credentials in the form: the password (with a code if the operator has an
// app for codes), or a passkey. If they are missing or wrong, it returns the page that asks
// for them.
func (s *Server) confirm(r *request) (view, error) {
	p := confirmPage{Path: r.URL.RequestURI()}

	done, fault, err := s.confirmed(r)
	if err != nil || done {
		return view{}, err
	}
	p.Fault = fault

	challenge, err := s.Access.PasskeyConfirmation(
		r.Context(),
		r.operator,
		s.sessionOf(r.Request),
		s.passkeySite(r),
	)
	if err != nil {
		return view{}, err
	}
	p.Passkey = string(challenge)

	p.Factor, err = s.Access.SecondFactorOf(r.Context(), r.operator)
	p.carry(r.PostForm)

	return view{
		status: http.StatusForbidden,
		page:   "confirm",
		title:  "Confirm that it is you",
		data:   p,
	}, err
}

// carry copies the fields of the action.
func (p *confirmPage) carry(form url.Values) {
	for name, values := range form {
		if slices.Contains(confirmFields, name) {
			continue
		}

		for _, value := range values {
			p.Fields = append(p.Fields, formField{name, value})
		}
	}

	slices.SortStableFunc(p.Fields, func(a, b formField) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// confirmed reports whether the form authenticates the operator; if not, fault says in words
// what is wrong. fault is empty if the form has no credentials.
func (s *Server) confirmed(r *request) (done bool, fault string, err error) {
	token := s.sessionOf(r.Request)
	password := r.PostFormValue(passwordField)
	assertion := r.PostFormValue(passkeyField)

	switch {
	case password != "":
		code := r.PostFormValue(codeField)
		err = s.Access.ConfirmOperator(r.Context(), token, flex.Secret(password), code, r.from)
		if err != nil {
			fault, err = confirmFault(r, err)
			return false, fault, err
		}

	case assertion != "":
		err = s.Access.ConfirmOperatorPasskey(
			r.Context(),
			token,
			s.passkeySite(r),
			assertion,
			r.from,
		)
		if err != nil {
			fault, err = passkeyFault(r, err)
			return false, fault, err
		}

	default:
		return false, "", nil
	}

	return true, "", nil
}

// confirmFault is loginFault. It also says if the password was right and the code was not.
func confirmFault(r *request, err error) (string, error) {
	if errors.Is(err, access.ErrCode) || errors.Is(err, access.ErrCodes) {
		return sentence(err.Error()), nil
	}

	return loginFault(r, err)
}
