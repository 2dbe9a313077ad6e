package portal

import (
	"net/http"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/reward"
)

// HouseholdName is how the audit log names whoever has a link to a home's page.
const HouseholdName = "household"

// consentWords say what somebody consents to, and what follows from withdrawing it.
type consentWords struct{ Name, Without string }

var consentTexts = map[string]consentWords{
	registry.BoundaryMeter: {
		"Using the readings of your electricity meter",
		"What is read from now on is used no more, so that nothing is earned that needs it. What was read before may be used still.",
	},
	string(flex.FullScheduleMethod): {
		"Planning when your car charges, and when your battery and heating run",
		"Your car then charges as soon as it is plugged in, and your battery and heating run as they are set: nothing is earned by other times. A plan that is under way ends at once.",
	},
	registry.CarDischarge: {
		"Using the battery of your car for your home and the grid",
		"Your car is then charged alone, and gives nothing back. A plan by which it does ends as soon as your charger has the next one.",
	},
	string(flex.LimitedPauseMethod): {
		"Pausing your charging for a short time",
		"Pauses that have not begun are cancelled, and no other is made.",
	},
}

// consents shows what the home consented to; one of them is asked about again if its kind is given.
func (s *Server) consents(r *request) error {
	return s.showConsents(r, http.StatusOK, r.URL.Query().Get("kind"), "")
}

func (s *Server) showConsents(
	r *request,
	status int,
	kind, wrong string,
) error {
	found, err := s.Registry.Consents(
		r.Context(),
		r.visit.OrgID,
		r.visit.SiteID,
	)
	if err != nil {
		return err
	}

	var asked *registry.ConsentState
	i := slices.IndexFunc(found, func(c registry.ConsentState) bool {
		return c.Kind == kind
	})
	if i >= 0 {
		asked = &found[i]
	}

	calls, err := s.Registry.Calls(
		r.Context(),
		r.visit.OrgID,
		r.visit.SiteID,
	)
	if err != nil {
		return err
	}

	return s.show(r, status, "consent", map[string]any{
		"Calls":    calls,
		"PerDay":   r.written("", "per_day", callsText(calls.Agreed.PerDay)),
		"PerMonth": r.written("", "per_month", callsText(calls.Agreed.PerMonth)),
		"Consents": found,
		"Asked":    asked,
		"Wrong":    wrong,
		"Done":     r.done(),
	})
}

// setConsent gives or withdraws a consent, once it is confirmed.
func (s *Server) setConsent(r *request) error {
	kind, give := r.PostFormValue("kind"), r.PostFormValue("act") == "give"
	if _, known := consentTexts[kind]; !known {
		return flex.Fail(flex.NotFound, "this page is not known")
	}

	if r.PostFormValue("sure") == "" {
		return s.showConsents(
			r,
			http.StatusUnprocessableEntity,
			kind,
			sentence(r.speech.say("please tick that you are sure")),
		)
	}

	act := flex.AuditEntry{
		Who:     HouseholdName,
		Act:     "withdraw consent",
		Org:     r.visit.OrgID,
		Subject: r.visit.SiteID.String(),
		Detail:  kind,
	}

	word := "withdrew"
	if give {
		act.Act = "give consent"
		word = "gave"
	}

	err := s.Access.Act(r.Context(), act, func() error {
		return s.Registry.SetConsent(
			r.Context(),
			r.visit.OrgID,
			r.visit.SiteID,
			kind,
			give,
		)
	})

	if flex.KindOf(err) == flex.Unmet {
		return s.showConsents(
			r,
			http.StatusUnprocessableEntity,
			kind,
			sentence(r.speech.say(
				"this cannot be given here, as something else is missing; please give it in your app",
			)),
		)
	}

	if err != nil {
		return err
	}

	http.Redirect(
		r.w,
		r.Request,
		reward.Root+r.token+"/consent?done="+word,
		http.StatusSeeOther,
	)

	return nil
}
