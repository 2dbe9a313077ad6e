package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// Failed jobs are not shown to an operator of some organisations, so the page does not tell
// them that every job ran.
func TestFleet_GoodOfSome(t *testing.T) {
	d := newConsole(t, "2026-01-14T12:00:00Z")
	d.Asset(d.Site(), flex.Charger, 7400)
	d.login()
	d.wants(d.page("/console/fleet"), `<p class="notice good">Nothing needs looking at`, "every background job ran")

	org, err := d.server.Registry.Org(t.Context(), d.Org)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.access.AddOperator(t.Context(), bea, beasPassword, access.Viewer); err != nil {
		t.Fatal(err)
	}
	if err := d.access.SetOperatorOrgs(t.Context(), bea, access.OperatorOrgs{Names: []string{org.Name}}); err != nil {
		t.Fatal(err)
	}

	d.loginAs(bea, beasPassword)
	page := d.page("/console/fleet")
	d.wants(page, `<p class="notice good">Nothing needs looking at`)
	if strings.Contains(page, "background job") {
		t.Error("an operator of some organisations reads that all jobs ran")
	}
}

// For an operator of some organisations, exceptions are counted by organisation, and the list
// behind each is that organisation's.
func TestFleet_ExceptionsOfSome(t *testing.T) {
	s, fen, _ := neighbours(t)
	both := access.OperatorOrgs{Names: []string{"Moorland Energy", fen.Name}}
	if err := s.access.SetOperatorOrgs(t.Context(), bea, both); err != nil {
		t.Fatal(err)
	}

	s.Exec(`INSERT INTO job (kind, org_id, subject, lease, queued_at, failed_at, error) VALUES ('mail', $1, $2, 0, 1, $3, 'gone')`,
		fen.ID.Bytes(), fen.ID.Bytes(), s.db.Now().UnixMicro())

	s.loginAs(bea, beasPassword)
	var fleet struct {
		Exceptions []struct{ Kind, See string }
	}
	if err := json.Unmarshal([]byte(s.page("/console/fleet.json")), &fleet); err != nil {
		t.Fatal(err)
	}

	lists, failed := 0, false
	for _, e := range fleet.Exceptions {
		if e.Kind == "work_failed" {
			failed = true
			if e.See != "" {
				t.Errorf("failed work leads to %s, which is refused to an operator of some organisations", e.See)
			}
		}

		if !strings.HasPrefix(e.See, "/console/assets?") && !strings.HasPrefix(e.See, "/console/deliveries?") {
			continue
		}

		lists++
		if !strings.Contains(e.See, "org=") {
			t.Errorf("%s of one organisation leads to %s", e.Kind, e.See)
		}
	}
	if !failed {
		t.Errorf("failed work is no exception: %v", fleet.Exceptions)
	}
	if lists == 0 {
		t.Errorf("no exception has a list: %v", fleet.Exceptions)
	}
}

// A page whose first numbers cannot be read gets them from its stream, and stays live.
func TestBrowser_FirstNumbersMissing(t *testing.T) {
	d := testScene(t).service
	whole := d.handler
	d.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/console/fleet.json" {
			http.Error(w, `{"detail":"the database is away"}`, http.StatusServiceUnavailable)
			return
		}
		whole.ServeHTTP(w, r)
	})

	b := browse(d)
	b.visit("/console/fleet") // waits until the plot is drawn
	b.truth(`document.querySelector("[data-plot=fleet] canvas") !== null`)

	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil // the browser reports the answer 503
}

// A page that is open lists a kind of exceptions that cannot be read, beside the others, and
// removes it once it can be read.
func TestBrowser_KindUnread(t *testing.T) {
	d := testScene(t).service
	b := browse(d)
	b.visit("/console/fleet")
	b.truth(`document.querySelector("[data-unread]").hidden`)

	d.Exec(`ALTER TABLE adr_order RENAME COLUMN to_at TO planted`)
	b.await(`!document.querySelector("[data-unread]").hidden`)
	b.truth(`document.querySelector("[data-unread] span").textContent === "order_unmet"`)
	b.truth(`document.querySelectorAll(".exceptions details").length > 0`)

	d.Exec(`ALTER TABLE adr_order RENAME COLUMN planted TO to_at`)
	b.await(`document.querySelector("[data-unread]").hidden`)
}
