package portal

import (
	"net/http"
	"strconv"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/reward"
)

// setCalls keeps how often the home may be called by instructions of the grid.
func (s *Server) setCalls(r *request) error {
	var agreed flex.AgreedCalls
	day, dayFits := callsField(r, "per_day")
	month, monthFits := callsField(r, "per_month")
	if !dayFits || !monthFits {
		return s.showConsents(
			r,
			http.StatusUnprocessableEntity,
			"",
			sentence(r.speech.say(
				"write a whole number from 0 to {1}, or leave the field empty",
				flex.CallsMost,
			)),
		)
	}

	agreed.PerDay, agreed.PerMonth = day, month
	act := flex.AuditEntry{
		Who:     HouseholdName,
		Act:     "set agreed calls",
		Org:     r.visit.OrgID,
		Subject: r.visit.SiteID.String(),
		Detail:  agreed.String(),
	}

	err := s.Access.Act(r.Context(), act, func() error {
		_, err := s.Registry.ChangeSite(
			r.Context(),
			r.visit.OrgID,
			r.visit.SiteID,
			registry.SiteChange{Calls: &agreed},
		)

		return err
	})
	if err != nil {
		return err
	}

	http.Redirect(
		r.w,
		r.Request,
		reward.Root+r.token+"/consent?done=gave",
		http.StatusSeeOther,
	)

	return nil
}

// callsField reads a number of calls; an empty field is no limit. False is what is no number of calls.
func callsField(r *request, name string) (flex.Optional[int], bool) {
	text := strings.TrimSpace(r.PostFormValue(name))
	if text == "" {
		return flex.Optional[int]{}, true
	}

	n, err := strconv.Atoi(text)

	return flex.Some(n), err == nil && n >= 0 && n <= flex.CallsMost
}

// callsText is a number of calls as its field has it: empty for no limit.
func callsText(n flex.Optional[int]) string {
	if !n.Given {
		return ""
	}
	return strconv.Itoa(n.Value)
}
