package homeassistant

import (
	"testing"
	"time"

	"flexd/client"
)

// A plan that gives a charging car less or more power later has no next start; one that pauses begins again after that.
func TestFollow_NextStart(t *testing.T) {
	now := time.Date(2026, time.March, 4, 23, 45, 0, 0, time.UTC)
	at := func(hours int) time.Time {
		return time.Date(2026, time.March, 4, 23+hours, 0, 0, 0, time.UTC)
	}

	for name, tt := range map[string]struct {
		limits []float64 // of an hour each, from 23:00
		next   time.Time
	}{
		"less power later": {[]float64{7000, 3000, 0}, time.Time{}},
		"a pause":          {[]float64{7000, 3000, 0, 7000, 3000}, at(3)},
		"waiting":          {[]float64{0, 7000, 3000}, at(1)},
	} {
		var plan client.ScheduleResponse
		for i, limit := range tt.limits {
			plan.Periods = append(plan.Periods, client.SchedulePeriod{
				StartTimestamp: client.At(at(i)),
				EndTimestamp:   client.At(at(i + 1)),
				LimitW:         limit,
			})
		}

		s := assetState{Plan: "none"}
		s.follow(plan, now)
		var got time.Time
		if s.NextStart != nil {
			got = *s.NextStart
		}
		if !got.Equal(tt.next) {
			t.Errorf("%s: next start %v, want %v", name, got, tt.next)
		}
	}
}

// Only 99999 W is no limit: a fast charger may be limited to more.
func TestNow_Limit(t *testing.T) {
	for watts, want := range map[float64]float64{7400: 7.4, 99_998: 99.998, 99_999: 0, 120_000: 120} {
		var s assetState
		s.now(watts)
		var got float64
		if s.LimitKW != nil {
			got = *s.LimitKW
		}
		if got != want {
			t.Errorf("%g W: %g kW, want %g", watts, got, want)
		}
	}
}

// A battery charges again after a pause, and not at a step that only continues.
func TestFollowSteps_NextStart(t *testing.T) {
	now := time.Date(2026, time.March, 4, 23, 45, 0, 0, time.UTC)
	at := func(hours int) client.Time {
		return client.At(time.Date(2026, time.March, 4, 23+hours, 0, 0, 0, time.UTC))
	}

	for _, tt := range []struct {
		actions []string // of an hour each, from 22:00
		plan    string
		next    client.Time
	}{
		{nil, "none", client.Time{}},
		{[]string{"charge_max", "discharge_max", "charge_max"}, "discharge_max", at(1)},
		{[]string{"charge_max", "charge_max", "charge_max", "avoid_import"}, "charge_max", client.Time{}},
		{[]string{"charge_max", "charge_max", "avoid_export", "charge_max"}, "charge_max", at(2)},
	} {
		var steps []client.BatteryScheduleStep
		for i, action := range tt.actions {
			steps = append(steps, client.BatteryScheduleStep{
				StartTimestamp: at(i - 1),
				EndTimestamp:   at(i),
				Action:         action,
			})
		}

		s := assetState{Plan: "none"}
		s.followSteps(steps, now)
		var next time.Time
		if s.NextStart != nil {
			next = *s.NextStart
		}
		if s.Plan != tt.plan || !next.Equal(tt.next.Time) {
			t.Errorf("%v: %s, next start %v, want %s, %v", tt.actions, s.Plan, next, tt.plan, tt.next)
		}
	}
}

// A car that gives power to the home does not wait.
func TestNow_Discharges(t *testing.T) {
	for watts, want := range map[float64]string{-7400: "discharging", 0: "waiting", 7400: "charging"} {
		s := assetState{Plan: "waiting"}
		s.now(watts)
		if s.Plan != want {
			t.Errorf("%g W: %s, want %s", watts, s.Plan, want)
		}
	}
}
