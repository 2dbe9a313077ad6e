package console

import (
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/push"
	"flexd/internal/store"
)

// safetyPage is what stops or limits the whole house.
type safetyPage struct {
	Halted    *store.Halt
	Held      int
	Lines     []safetyLine
	ReasonMax int
	CapMax    int64 // kW
	StartsMax int
}

// safetyLine is an organisation with its caps and what waits for it.
type safetyLine struct {
	flex.Org
	Held     int
	CapKW    string // "" for none
	StartsPM string
}

// Bounds of an organisation's caps.
const (
	fleetCapMax = 10_000_000 // kW
	startsMax   = 1_000_000  // a minute
)

func (s *Server) safety(r *request) (view, error) {
	p := safetyPage{ReasonMax: push.ReasonMax, CapMax: fleetCapMax, StartsMax: startsMax}
	err := s.DB.ReadAll(r.Context(), func(all *store.All) (err error) {
		if p.Halted, err = all.Halted(r.Context()); err != nil {
			return err
		}
		orgs, err := all.Orgs(r.Context())
		if err != nil {
			return err
		}
		for _, o := range orgs {
			_, held, err := all.WaitingSince(r.Context(), o.ID, all.Now().Add(time.Second), 1)
			if err != nil {
				return err
			}
			l := safetyLine{Org: o, Held: held}
			if c := o.Settings.FleetCap; c > 0 {
				l.CapKW = strconv.FormatFloat(c.KW(), 'f', -1, 64)
			}
			if n := o.Settings.StartsPerMinute; n > 0 {
				l.StartsPM = strconv.Itoa(n)
			}
			p.Lines = append(p.Lines, l)
			p.Held += held
		}
		return nil
	})
	return view{page: "safety", title: "Safety", data: p}, err
}

func (s *Server) halt(r *request) (view, error) {
	reason := strings.TrimSpace(r.PostFormValue("reason"))
	err := s.act(r, store.Act{Act: "halt pushes", Detail: reason}, func() error { return s.Push.Halt(r.Context(), r.who.Name, reason) })
	return view{to: "/console/safety?done=halted"}, err
}

func (s *Server) resume(r *request) (view, error) {
	err := s.act(r, store.Act{Act: "resume pushes"}, func() error { return s.Push.Resume(r.Context()) })
	return view{to: "/console/safety?done=resumed"}, err
}

// caps sets what an organisation's fleet may draw and start.
func (s *Server) caps(r *request) (view, error) {
	var org flex.OrgID
	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}
	kilowatts, err := number(r.PostFormValue("cap_kw"), "the cap in kW", fleetCapMax)
	if err != nil {
		return view{}, err
	}
	starts, err := number(r.PostFormValue("starts"), "starts a minute", startsMax)
	if err != nil {
		return view{}, err
	}
	act := store.Act{Act: "set caps", Org: org, Subject: "fleet",
		Detail: "cap " + orNone(kilowatts, "kW") + ", starts " + orNone(starts, "a minute")}
	err = s.act(r, act, func() error {
		return s.Access.SetOrgCaps(r.Context(), org, flex.FromKW(kilowatts), int(starts))
	})
	return view{to: "/console/safety?done=capped"}, err
}

// number reads a number of a form, which may be left empty for none.
func number(text, what string, most float64) (float64, error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > most {
		return 0, flex.Fail(flex.Malformed, "%s is %q: give a number from 0 to %v, or nothing for none", what, text, most)
	}
	return v, nil
}

func orNone(v float64, unit string) string {
	if v == 0 {
		return "none"
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + " " + unit
}
