package operations

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// What is sent again after long snoozes is not over for Alertmanager as it comes.
func TestAlertmanagerAlert_Snoozed(t *testing.T) {
	fired := time.Date(2026, 1, 14, 3, 0, 0, 0, time.UTC)
	p := alertmanagerAlert(store.AlertMessage{
		What:     sayFiring,
		QueuedAt: fired.Add(2 * SnoozeMax),
		Alert:    flex.Alert{ID: outageAlert, Kind: string(Halted), FiredAt: fired},
	}, "")

	if !p.StartsAt.Equal(fired) || !p.EndsAt.After(fired.Add(3*SnoozeMax)) {
		t.Errorf("from %v to %v", p.StartsAt, p.EndsAt)
	}
}
