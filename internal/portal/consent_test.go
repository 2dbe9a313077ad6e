package portal_test

import (
	"testing"
	"time"

	"flexd/internal/portal"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
)

// acts returns what the audit log has of a household.
func (e *evening) acts(t *testing.T) (acts []string) {
	t.Helper()
	err := e.db.ReadAll(t.Context(), func(all *store.All) error {
		found, err := all.Acts(t.Context(), store.ActFilter{Who: portal.HouseholdName, Limit: 10})
		for _, a := range found {
			acts = append(acts, a.Act+": "+a.Detail+": "+a.Outcome)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return acts
}

// A consent is withdrawn and given again, each after it is confirmed, and is in the audit log.
func TestHousehold_Consents(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		places := &registry.Service{DB: e.db}
		if _, err := places.GiveMeterConsent(t.Context(), e.org, e.site, e.now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}

		e.plugIn(t)
		status, page := e.get(t, e.page+"/consent")
		want(
			t,
			status,
			page,
			200,
			"Using the readings of your electricity meter",
			"Given on 15 January 2026.",
			"Planning when your car charges, and when your battery and heating run",
		)
		refuse(t, page, "Pausing")

		const control = "full_asset_schedule_control"
		status, page = e.get(t, e.page+"/consent?kind="+control)
		want(
			t,
			status,
			page,
			200,
			"Your car then charges as soon as it is plugged in",
			"as they are set: nothing is earned by other times.",
			"Withdraw it",
		)
		status, page = e.post(t, e.page+"/consent", "kind", control, "act", "withdraw")
		want(t, status, page, 422, "Please tick that you are sure.", "Withdraw it")

		e.now = e.now.Add(time.Minute)
		status, page = e.post(
			t,
			e.page+"/consent",
			"kind",
			control,
			"act",
			"withdraw",
			"sure",
			"yes",
		)
		want(
			t,
			status,
			page,
			200,
			"It is withdrawn",
			"Withdrawn on 15 January 2026.",
			"Give again",
		)
		status, page = e.get(t, e.page)
		want(
			t,
			status,
			page,
			200,
			"A car is plugged in, but its charging is no longer planned: it charges on its own.",
		)
		refuse(t, page, "It charges 0")
		refuse(t, page, "No car is plugged in.")

		e.now = e.now.Add(time.Minute)
		status, page = e.post(
			t,
			e.page+"/consent",
			"kind",
			control,
			"act",
			"give",
			"sure",
			"yes",
		)
		want(t, status, page, 200, "What you agreed to counts from now on.")
		status, page = e.get(t, e.page)
		want(
			t,
			status,
			page,
			200,
			"it charges on its own. It is planned again when you next plug the car in, at the latest.",
		)
		refuse(t, page, "once you have agreed")
		e.plugIn(t)
		status, page = e.get(t, e.page)
		want(t, status, page, 200, "It charges 01:00 to 03:00")

		e.now = e.now.Add(time.Minute)
		err := e.db.Write(t.Context(), e.org, func(tx *store.Tx) error {
			_, err := e.control.ExcludeAsset(t.Context(), tx, e.asset)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		status, page = e.get(t, e.page)
		want(
			t,
			status,
			page,
			200,
			"the operator has excluded it from control: it charges on its own.",
		)
		refuse(t, page, "once you have agreed")

		e.now = e.now.Add(time.Minute)
		for _, act := range []string{"withdraw", "give"} {
			e.now = e.now.Add(time.Minute)
			status, page = e.post(
				t,
				e.page+"/consent",
				"kind",
				registry.BoundaryMeter,
				"act",
				act,
				"sure",
				"yes",
			)
			want(t, status, page, 200)
		}

		status, page = e.post(
			t,
			e.page+"/consent",
			"kind",
			"limited_pause",
			"act",
			"give",
			"sure",
			"yes",
		)
		want(t, status, page, 404)
		status, page = e.post(
			t,
			e.page+"/consent",
			"kind",
			"x",
			"act",
			"give",
			"sure",
			"yes",
		)
		want(t, status, page, 404)

		acts := e.acts(t)
		if len(acts) != 5 || acts[4] != "withdraw consent: "+control+": done" || acts[0] == "give consent: limited_pause: done" {
			t.Errorf("the audit log has %q", acts)
		}
	})
}

// What was confirmed is of the home of the link alone.
func TestHousehold_ConsentsOfAnother(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		elsewhere := e.Site()
		h := *e.home
		h.site = elsewhere
		status, page := h.post(
			t,
			h.link(t, reward.LinkOptions{})+"/consent",
			"kind",
			"full_asset_schedule_control",
			"act",
			"withdraw",
			"sure",
			"yes",
		)
		want(t, status, page, 404)

		status, page = e.get(t, e.page+"/consent")
		want(t, status, page, 200, "Withdraw")
	})
}
