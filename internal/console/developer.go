package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"flexd/internal/access"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/operations"
)

// Clock reads and advances an organisation's sandbox clock. Advancing it runs everything that
// becomes due in between.
type Clock interface {
	Clock(ctx context.Context, org flex.OrgID) (now time.Time, held bool, err error)
	Advance(ctx context.Context, org flex.OrgID, to time.Time) error
}

// developerPage has the tools of an organisation's developers.
type developerPage struct {
	operations.DeveloperView
	Sandbox  bool
	Held     bool
	Jumps    []jump
	Roles    []flex.Role
	Requests []access.LoggedRequest
	Fixtures []fixture
	Export   Export
}

// Schedules returns the current endpoint for schedules, with which the form is filled; the
// zero value if none is set.
func (p *developerPage) Schedules() operations.EndpointLine {
	for _, e := range p.Endpoints {
		if e.Name == string(flex.ScheduleEndpoint) {
			return e
		}
	}

	return operations.EndpointLine{}
}

// jump is a button of the sandbox clock.
type jump struct {
	Name string
	To   time.Time
	Far  bool // a word is to be typed for it
}

// confirmAdvance is the longest advance of a sandbox clock that needs no typed word: a day,
// even one of 25 hours.
const confirmAdvance = 25 * time.Hour

// fixture is a metering point of the sandbox, with its purpose.
type fixture struct {
	MPAN    string
	Address string
	Case    string
}

// credentialRoles are the roles that a credential may have.
var credentialRoles = append(slices.Clone(flex.Roles), flex.Payouts)

func (s *Server) developer(r *request) (view, error) {
	if err := r.onlyFilters("org"); err != nil {
		return view{}, err
	}

	p, err := s.developerPage(r)
	if err != nil {
		return view{}, err
	}

	t := &table{
		Name: "requests",
		Columns: []string{
			"at",
			"request_id",
			"username",
			"method",
			"path",
			"status",
			"took_us",
			"body",
			"refusal",
		},
	}

	for _, q := range p.Requests {
		t.add(
			q.At,
			q.ID,
			q.User,
			q.Method,
			q.Path,
			q.Status,
			q.Took.Microseconds(),
			q.Body,
			q.Refusal,
		)
	}

	record := developerJSON{
		p.Credentials,
		p.Endpoints,
		listing{Rows: t.objects()},
	}

	return view{
		page:   "developer",
		title:  "Developer",
		data:   p,
		table:  t,
		record: record,
	}, nil
}

// developerJSON is the page for programs: its rows are the latest requests.
type developerJSON struct {
	Credentials []operations.CredentialLine `json:"credentials"`
	Endpoints   []operations.EndpointLine   `json:"endpoints"`
	listing
}

func (s *Server) developerPage(r *request) (*developerPage, error) {
	p := &developerPage{
		Sandbox: s.Environment == flex.Sandbox && s.Clock != nil,
		Roles:   credentialRoles,
		Export:  r.exports(),
	}

	var chosen flex.OrgID
	if err := readFilter(
		&chosen,
		r.URL.Query().Get("org"),
		"organisation",
	); err != nil {
		return nil, err
	}

	var err error
	p.DeveloperView, err = s.Operations.Developer(r.Context(), chosen)
	if err != nil || len(p.Orgs) == 0 {
		return p, err
	}

	p.Held = p.Org.ClockHeld
	p.Requests = s.Access.RecentRequests(p.Org.ID)
	if p.Sandbox {
		p.Jumps = jumps(p.Now)
		p.Fixtures = fixtures()
	}

	return p, nil
}

// jumps are the times to which the clock is often advanced.
func jumps(now time.Time) []jump {
	at := func(hour int) time.Time { // the next time that the clocks show the full hour
		local := now.In(flex.London)
		t := time.Date(
			local.Year(),
			local.Month(),
			local.Day(),
			hour,
			0,
			0,
			0,
			flex.London,
		)

		if !t.After(now) {
			t = time.Date(
				local.Year(),
				local.Month(),
				local.Day()+1,
				hour,
				0,
				0,
				0,
				flex.London,
			)
		}

		return t
	}

	list := []jump{
		{Name: "An hour on", To: now.Add(time.Hour)},
		{Name: "To 07:00", To: at(7)},
		{Name: "To 14:00, when prices come out", To: at(14)},
		{Name: "To midnight", To: at(0)},
		{Name: "A day on", To: now.Add(24 * time.Hour)},
	}

	if change := clockChange(now); !change.IsZero() {
		to := change.Add(time.Hour)
		list = append(list, jump{
			Name: "Over the clock change",
			To:   to,
			Far:  to.Sub(now) > confirmAdvance,
		})
	}

	return list
}

// clockChange is the next instant at which the clocks in London change.
func clockChange(now time.Time) time.Time {
	for d := flex.DayAt(now); d.Start().Before(now.AddDate(1, 0, 0)); d = d.Add(1) {
		if d.Periods() != 48 {
			// 01:00 or 02:00 as the clocks show
			change := d.Start().Add(time.Hour)
			_, offset := d.Start().In(flex.London).Zone()
			if offset == 3600 {
				change = change.Add(time.Hour)
			}

			if change.After(now) {
				return change
			}
		}
	}

	return time.Time{}
}

// fixtures lists the metering points of the sandbox with their purposes.
func fixtures() []fixture {
	var list []fixture
	for i, m := range directory.SandboxMeters() {
		f := fixture{m.MPAN, m.Address, "a home that is settled half-hourly"}
		switch {
		case !m.Import:
			f.Case = "the export point of a home with solar panels"

		case !m.Domestic:
			f.Case = "not domestic: not eligible"

		case !m.Energised:
			f.Case = "not energised"

		case !m.HalfHourly:
			f.Case = "not settled half-hourly: eligible by the asset's own meter alone"

		case i >= 9:
			f.Case = "one of two points at one address, which is never guessed at"
		}

		list = append(list, f)
	}

	return append(
		list,
		fixture{
			directory.SlowMPAN,
			string(directory.SlowPostcode),
			"the directory does not answer in time",
		},
		fixture{
			directory.DownMPAN,
			string(directory.DownPostcode),
			"the directory fails",
		},
	)
}

// orgPath reads the organisation of an act.
func orgPath(r *request) (flex.OrgID, string, error) {
	var org flex.OrgID
	err := readID(&org, r.PathValue("org"), "organisation")
	return org, "/console/developer?org=" + org.String() + "&done=", err
}

// advance advances the organisation's clock. The page and the audit log call it a turn.
func (s *Server) advance(r *request) (view, error) {
	org, backPath, err := orgPath(r)
	if err != nil {
		return view{}, err
	}
	if s.Clock == nil {
		return view{}, flex.Fail(
			flex.Malformed,
			"there is no clock to be turned here",
		)
	}

	text := r.PostFormValue("to")
	to, err := time.Parse(time.RFC3339, text)
	if err != nil {
		to, err = londonTime(text)
	}

	if err != nil {
		return view{}, err
	}

	now, _, err := s.Clock.Clock(r.Context(), org)
	if err == nil && to.Sub(now) > confirmAdvance {
		err = checkConfirmation(r, "turn")
	}

	if err != nil {
		return view{}, err
	}

	act := access.Action{
		Act:     "turn sandbox clock",
		Org:     org,
		Subject: to.UTC().Format(time.RFC3339),
	}

	err = s.act(r, act, func() error {
		return s.Clock.Advance(r.Context(), org, to)
	})

	return view{to: backPath + "turned"}, err
}

// plug plays a car that is plugged in or out at a charger of the sandbox.
func (s *Server) plug(r *request) (view, error) {
	org, backPath, err := orgPath(r)
	if err != nil {
		return view{}, err
	}
	if s.Environment != flex.Sandbox {
		return view{}, flex.Fail(
			flex.Malformed,
			"cars are played in the sandbox alone",
		)
	}

	var asset flex.AssetID
	if err := readID(&asset, r.PostFormValue("asset"), "asset"); err != nil {
		return view{}, err
	}

	ev, notice := control.Event{Kind: control.PlugOut}, "unplugged"
	if r.PathValue("way") == "in" {
		ev, err = plugIn(r)
		if err != nil {
			return view{}, err
		}
		notice = "plugged"
	}

	act := access.Action{
		Act:     "play " + words(ev.Kind),
		Org:     org,
		Subject: asset.String(),
	}

	err = s.act(r, act, func() error {
		return s.Control.Event(r.Context(), org, asset, ev)
	})

	return view{to: backPath + notice}, err
}

// plugIn reads the form of a car that is plugged in.
func plugIn(r *request) (control.Event, error) {
	need, err := number(r.PostFormValue("need_kwh"), "the energy in kWh", 1000)
	if err != nil {
		return control.Event{}, err
	}

	wall, err := flex.ParseWallTime(cmp.Or(
		r.PostFormValue("ready_by"),
		"07:00",
	))
	if err != nil {
		return control.Event{}, flex.Fail(
			flex.Malformed,
			"ready-by is a time of the form HH:MM",
		)
	}

	ev := control.Event{
		Kind: control.PlugIn,
		Intent: &flex.Intent{
			Need:         flex.FromKWh(need),
			ReadyByLocal: &wall,
			Mode:         flex.Minimise,
		},
	}

	if text := r.PostFormValue("off_peak"); text != "" {
		ev.Tariff = &flex.Tariff{
			OffPeak: text,
			Zone:    flex.London.String(),
			Type:    flex.DualRate,
		}
	}

	return ev, nil
}

// secretPage shows a credential's password once.
type secretPage struct{ Username, Secret string }

// addCredential makes a further credential and shows its password once.
func (s *Server) addCredential(r *request) (view, error) {
	org, _, err := orgPath(r)
	if err != nil {
		return view{}, err
	}

	username := r.PostFormValue("username")
	var roles []flex.Role

	for _, role := range credentialRoles {
		if slices.Contains(r.PostForm["role"], string(role)) {
			roles = append(roles, role)
		}
	}

	if len(roles) == 0 {
		return view{}, flex.Fail(flex.Malformed, "choose at least one role")
	}

	var secret flex.Secret
	err = s.act(
		r,
		access.Action{
			Act:     "add credential",
			Org:     org,
			Subject: username,
		},
		func() error {
			var err error
			secret, err = s.Access.AddCredential(
				r.Context(),
				org,
				username,
				"",
				roles,
				access.NoLimits,
			)

			return err
		},
	)

	return view{
		page:   "credential",
		title:  "New credential",
		crumbs: []crumb{{"Developer", "/console/developer?org=" + org.String()}},
		data:   secretPage{Username: username, Secret: secret.Reveal()},
	}, err
}

// bindCredential replaces the client certificates that a credential is bound to.
func (s *Server) bindCredential(r *request) (view, error) {
	org, backPath, err := orgPath(r)
	if err != nil {
		return view{}, err
	}

	username := r.PostFormValue("username")
	prints := strings.FieldsFunc(r.PostFormValue("certificates"), func(c rune) bool {
		return c == ',' || unicode.IsSpace(c)
	})

	err = s.act(
		r,
		access.Action{
			Act:     "bind credential",
			Org:     org,
			Subject: username,
			Detail:  access.BoundTo(prints),
		},
		func() error {
			return s.Access.BindCredential(r.Context(), org, username, prints)
		},
	)

	return view{to: backPath + "certified"}, err
}

// revokeCredential ends a credential and its tokens, if its username was typed.
func (s *Server) revokeCredential(r *request) (view, error) {
	org, backPath, err := orgPath(r)
	if err != nil {
		return view{}, err
	}

	username := r.PostFormValue("username")
	if err := checkConfirmation(r, username); err != nil {
		return view{}, err
	}

	err = s.act(
		r,
		access.Action{
			Act:     "revoke credential",
			Org:     org,
			Subject: username,
		},
		func() error {
			return s.Access.RevokeOf(r.Context(), org, username)
		},
	)

	return view{to: backPath + "revoked"}, err
}

// setEndpoint sets where the organisation's schedules are sent.
func (s *Server) setEndpoint(r *request) (view, error) {
	org, _, err := orgPath(r)
	if err != nil {
		return view{}, err
	}

	settings := delivery.Settings{
		URL:   r.PostFormValue("url"),
		Bare:  r.PostFormValue("bare") != "",
		Nulls: r.PostFormValue("nulls") != "",
	}

	var changed any
	var secretMade bool
	err = s.act(
		r,
		access.Action{
			Act:     "set endpoint",
			Org:     org,
			Subject: settings.URL,
		},
		func() error {
			e, isNew, err := s.Push.SetEndpoint(
				r.Context(),
				org,
				flex.ScheduleEndpoint,
				settings,
			)

			changed, secretMade = e, isNew

			return err
		},
	)

	if err != nil {
		return view{}, err
	}

	if !secretMade {
		return view{to: "/console/deliveries?org=" + org.String()}, nil
	}

	return view{
		page:   "secret",
		title:  "New secret",
		crumbs: []crumb{{"Developer", "/console/developer?org=" + org.String()}},
		data:   changed,
	}, nil
}
