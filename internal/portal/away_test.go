package portal_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
)

// Who is away needs nothing of a car, be it plugged in then or before, and without any intent; that ends
// by itself.
func TestHousehold_Away(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		status, page := e.get(t, e.page)
		want(t, status, page, 200, `name="from" type="date" value="2026-01-15"`)

		for _, days := range [][2]string{{"", ""}, {"2026-01-16", "x"}, {"2026-01-18", "2026-01-16"}, {"2026-01-10", "2026-01-15"}, {"2026-01-16", "2026-04-01"}} {
			status, page = e.post(
				t,
				e.page+"/away",
				"act",
				"away",
				"from",
				days[0],
				"back",
				days[1],
			)
			want(t, status, page, 422, `role="alert"`, `type="date" value="`+days[1]+`"`)
		}

		status, page = e.post(
			t,
			e.page+"/away",
			"act",
			"away",
			"from",
			"2026-01-15",
			"back",
			"2026-01-19",
		)
		want(
			t,
			status,
			page,
			200,
			"Nothing is charged while you are away.",
			"Nothing is asked for until 00:00 on Monday, 19 January.",
		)

		e.plugIn(t)
		status, page = e.get(t, e.page)
		want(
			t,
			status,
			page,
			200,
			"Nothing is asked for, so it does not charge.",
			"Charge as usual again",
		)

		x, err := e.control.Explanation(t.Context(), e.org, e.asset)
		if err != nil || x.Plan.Energy != 0 || x.Inputs[0].Origin != "household" || x.Summary[:21] != "Nobody is at home, or" {
			t.Errorf("%v %+v", err, x)
		}

		e.now = time.Date(2026, 1, 18, 23, 59, 0, 0, time.UTC)
		e.follow(t, 0)
		e.now = e.now.Add(2 * time.Minute)
		e.publish(t)
		e.follow(t, 1)
		e.follow(t, 0)

		e.page = e.link(t, reward.LinkOptions{})
		status, page = e.get(t, e.page)
		want(
			t,
			status,
			page,
			200,
			"It charges 01:00 to 03:00, and has the 14.8 kWh by 07:00 on Monday.",
		)
		refuse(t, page, "Charge as usual again")
	})
}

// An absence that lies ahead begins by itself.
func TestHousehold_AwayAhead(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		status, page := e.post(
			t,
			e.page+"/away",
			"act",
			"away",
			"from",
			"2026-01-16",
			"back",
			"2026-01-20",
		)
		want(
			t,
			status,
			page,
			200,
			"From Friday, 16 January until 00:00 on Tuesday, 20 January nothing is asked for.",
			"It charges 01:00 to 03:00",
		)

		// Until then the car is planned, and its household can ask for something else.
		want(t, status, page, 200, "Another time, another amount")
		status, page = e.wish(t, "act", "wish", "ready_by", "06:00", "kwh", "7.4")
		want(
			t,
			status,
			page,
			200,
			"and has the 7.4 kWh by 06:00 on Friday.",
			"From Friday, 16 January until",
		)

		e.now = time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
		e.follow(t, 1)
		e.follow(t, 0)
		e.page = e.link(t, reward.LinkOptions{})
		status, page = e.get(t, e.page)
		want(t, status, page, 200, "so it does not charge.")
	})
}

// A night that is skipped twice, as by two devices or a doubled click, is one night.
func TestHousehold_SkipTwice(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		for range 2 {
			status, page := e.wish(t, "act", "skip")
			want(
				t,
				status,
				page,
				200,
				"Nothing is asked for until 07:00 on Friday, 16 January.",
			)
		}
	})
}

// A night is skipped while the car charges at once: it does so until its end, and is said to need nothing.
func TestHousehold_SkipNow(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		status, page := e.wish(t, "act", "now", "hours", "2")
		want(
			t,
			status,
			page,
			200,
			"It charges 18:00 to 20:00, and has the 14.8 kWh by 07:00 on Friday.",
		)

		status, page = e.wish(t, "act", "skip")
		want(
			t,
			status,
			page,
			200,
			"It charges 18:00 to 20:00.",
			"Nothing is asked for until 07:00 on Friday, 16 January.",
		)
		refuse(t, page, "0.0 kWh by")
	})
}

// A car that is charged at once in a skipped night has no need that it would be charged to.
func TestHousehold_SkippedChargedAtOnce(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		e.wish(t, "act", "skip")
		status, page := e.wish(t, "act", "now", "hours", "1")
		want(
			t,
			status,
			page,
			200,
			"It charges at once until ",
			"Nothing is asked for until 07:00 on Friday, 16 January.",
		)
		refuse(t, page, "0.0 kWh")
	})
}

// A night that is skipped takes no absence back that lies ahead.
func TestHousehold_SkipBeforeAway(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		e.post(
			t,
			e.page+"/away",
			"act",
			"away",
			"from",
			"2026-01-17",
			"back",
			"2026-01-20",
		)
		status, page := e.wish(t, "act", "skip")
		want(
			t,
			status,
			page,
			422,
			"From Saturday, 17 January until 00:00 on Tuesday, 20 January nothing is asked for.",
		)

		e.post(
			t,
			e.page+"/away",
			"act",
			"away",
			"from",
			"2026-01-16",
			"back",
			"2026-01-20",
		)
		status, page = e.wish(t, "act", "skip")
		want(
			t,
			status,
			page,
			200,
			"Nothing is asked for until 00:00 on Tuesday, 20 January.",
		)
	})
}

// Of two cars one skips a night: the home can still say that it is away, and each car can be taken back alone.
func TestHousehold_AwayTwoCars(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		const asUsual, away = "Charge as usual again", "We are away"
		second := e.Asset(e.site, flex.Charger, 7400)
		e.plugIn(t)

		status, page := e.wish(t, "act", "skip")
		want(
			t,
			status,
			page,
			200,
			"Nothing is asked for until 07:00 on Friday, 16 January.",
			away,
		)
		if n := strings.Count(page, asUsual); n != 1 {
			t.Errorf("%d forms end a skipped night of one car", n)
		}

		status, page = e.post(
			t,
			e.page+"/away",
			"act",
			"away",
			"from",
			"2026-01-15",
			"back",
			"2026-01-19",
		)
		want(t, status, page, 200)
		refuse(t, page, away)
		if n := strings.Count(page, asUsual); n != 3 {
			t.Errorf("%d forms end the absence of two cars", n)
		}

		status, page = e.wish(t, "act", "back")
		want(
			t,
			status,
			page,
			200,
			"Welcome back.",
			away,
			"It charges 01:00 to 03:00,",
			"Nothing is asked for until 00:00 on Monday, 19 January.",
		)

		status, page = e.wish(t, "asset", second.String(), "act", "back")
		want(t, status, page, 200, away)
		refuse(t, page, asUsual)
		refuse(t, page, "Nothing is asked for until")

		status, page = e.wish(t, "asset", flex.AssetID{15: 9}.String(), "act", "back")
		want(t, status, page, 422, "No such car or charger is at this home any more")
	})
}

// follow has absences followed, and so many of them begin or end.
func (e *evening) follow(t *testing.T, count int) {
	t.Helper()
	report, err := e.control.ReplanAbsences(t.Context())
	if err != nil || report.Count != count {
		t.Errorf("%d absences began or ended, want %d: %v", report.Count, count, err)
	}
}
