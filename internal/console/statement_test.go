package console_test

import (
	"testing"

	"flexd/internal/flex"
)

// A statement's netted months are shown, with their state.
func TestStatement_Month(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		if _, err := d.reward.SetTerms(t.Context(), d.Org, map[string]string{"user_share": "0.5"}, flex.Day{}, "ada"); err != nil {
			t.Fatal(err)
		}

		s.night()
		d.login()
		d.wants(d.page("/console/sites/"+s.sites[plain].String()+"/statement?month=2026-01"),
			"January 2026 netted", "The events of January 2026 come to ", "Their standard error is ", "standard errors of what is usual", "Events of the month")
	})
}

// A withdrawal that is not paid does not read as if it were.
func TestStatement_WithdrawalStatus(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.night()
		s.withdraw(plain, 40)
		d.login()

		const days = "?from=2026-01-01&to=2026-01-31"
		waits := `Withdrawn to the bank account. <span class="tag">pending approval</span>`
		site := "/console/sites/" + s.sites[plain].String()
		d.wants(d.page(site+"/statement"+days), waits)
		d.wants(d.page(site+days), waits)
	})
}
