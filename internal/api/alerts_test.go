package api_test

import (
	"fmt"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// fire has an alert of the organisation fire, and returns its id.
func (h *fixture) fire(db *store.DB, org flex.OrgID, kind string) (id string) {
	h.Helper()
	err := db.WriteAll(h.Context(), func(all *store.All) error {
		a, err := all.NoteAlert(h.Context(), flex.Alert{Kind: kind, Org: org, Level: "critical", Count: 1, Title: "1 asset"})
		if err != nil {
			return err
		}

		id = a.ID.String()
		_, err = all.FireAlert(h.Context(), a)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return id
}

// TestAlerts_Answered has alerts of two organisations and one of all: only one's own can be answered, each answer is
// in the audit log, and the others stay as they are.
func TestAlerts_Answered(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		other, _ := h.newOrg("Bolt", "bolt")
		mine, second := h.fire(db, h.org.ID, "refused"), h.fire(db, h.org.ID, "waiting")
		theirs, everybodys := h.fire(db, other.ID, "refused"), h.fire(db, flex.OrgID{}, "refused")
		at := "/operations/alerts/"

		h.want("POST", at+mine+"/acknowledge", `{"note":"the supplier is called"}`, 200, "")
		h.want("POST", at+mine+"/acknowledge", `{}`, 200, "")
		r := h.want("POST", at+second+"/snooze", `{"minutes":43200,"note":"mended next month"}`, 200, "")
		if text(t, r.body, "snoozed_until") == "" || text(t, r.body, "acknowledged_at") == "" {
			t.Error(r.body)
		}

		long := strings.Repeat("x", 500)
		h.want("POST", at+mine+"/acknowledge", fmt.Sprintf(`{"note":%q}`, long), 200, "")
		h.want("POST", at+mine+"/acknowledge", fmt.Sprintf(`{"note":%q}`, long+"x"), 400, `{"detail":"the note has 501 bytes, more than 500"}`)
		h.want("POST", at+mine+"/snooze", `{"minutes":1,"note":" "}`, 400, `{"detail":"say why the alert may rest"}`)
		for _, body := range []string{`{"minutes":0,"note":"x"}`, `{"minutes":43201,"note":"x"}`, `{"minutes":1}`, `{"minutes":1,"note":""}`} {
			h.want("POST", at+mine+"/snooze", body, 422, "")
		}
		for _, id := range []string{theirs, everybodys} {
			h.want("POST", at+id+"/acknowledge", `{}`, 404, `{"detail":"no such alert is firing"}`)
			h.want("POST", at+id+"/snooze", `{"minutes":1,"note":"x"}`, 404, "")
		}

		var acts []flex.AuditEntry
		err := db.ReadAll(t.Context(), func(all *store.All) error {
			alerts, err := all.Alerts(t.Context(), store.AlertFilter{Limit: 10})
			for _, a := range alerts {
				if id := a.ID.String(); (a.AcknowledgedAt.IsZero()) != (id == theirs || id == everybodys) {
					t.Errorf("alert %s is acknowledged %v", id, a.AcknowledgedAt)
				}
			}
			if err == nil {
				acts, err = all.Acts(t.Context(), store.ActFilter{Limit: 20})
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		noted := 0
		for _, a := range acts {
			if a.Who == "credential acme" && a.Subject == mine && a.Act == "acknowledge alert" {
				noted++
			}
		}
		if noted < 3 {
			t.Errorf("%d acknowledgements in the audit log: %+v", noted, acts)
		}
	})
}
