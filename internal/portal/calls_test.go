package portal_test

import "testing"

// A home says how often it may be called, sees what it said and how often it was, and ends it.
func TestHousehold_AgreedCalls(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		status, page := e.get(t, e.page+"/consent")
		want(t, status, page, 200, "How often the grid may ask your home", "So far it was 0 times today and 0 times this month.", `name="per_day" inputmode="numeric" size="6" value=""`)

		status, page = e.post(t, e.page+"/calls", "per_day", "1", "per_month", "4")
		want(t, status, page, 200, "What you agreed to counts from now on.", `name="per_day" inputmode="numeric" size="6" value="1"`, `size="6" value="4"`)

		for _, wrong := range []string{"-1", "1001", "often"} {
			status, page = e.post(t, e.page+"/calls", "per_day", wrong, "per_month", "4")
			want(t, status, page, 422, "Write a whole number from 0 to 1000, or leave the field empty.", `value="`+wrong+`"`)
		}

		status, page = e.post(t, e.page+"/calls", "per_day", "", "per_month", "")
		want(t, status, page, 200, `name="per_month" inputmode="numeric" size="6" value=""`)
		if acts := e.acts(t); len(acts) != 2 || acts[1] != "set agreed calls: 1 a day, 4 a month: done" || acts[0] != "set agreed calls: any number of calls: done" {
			t.Errorf("the audit log has %q", acts)
		}
	})
}
