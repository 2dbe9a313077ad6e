package console_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"flexd/internal/console"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
)

// alert has pushes halted, and an alert of it fire.
func (d *service) alert() string {
	d.Helper()
	route := store.AlertRoute{Name: "night", Kind: operations.RouteWebhook, Target: "https://example.com/alerts"}
	if err := d.server.Operations.AddRoute(d.Context(), &route); err != nil {
		d.Fatal(err)
	}
	if err := d.push.Halt(d.Context(), delivery.HaltOrder{Operator: operator, Reason: "a firmware fault"}); err != nil {
		d.Fatal(err)
	}
	if _, err := d.server.Operations.WatchAlerts(d.Context()); err != nil {
		d.Fatal(err)
	}

	p, err := d.server.Operations.AlertList(d.Context(), true)
	if err != nil {
		d.Fatal(err)
	}
	for _, a := range p.Alerts {
		if a.Kind == string(operations.Halted) {
			return a.ID.String()
		}
	}

	d.Fatal("no alert fires")
	return ""
}

// TestAlerts looks after an alert: with a note, then by letting it rest, which asks for one.
func TestAlerts(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		d.wants(d.page("/console/alerts"), "No alerts are sent", "No alert has fired.", "short of headroom")
		id := d.alert()
		d.wants(d.page("/console/alerts"), "a firmware fault", "nobody", "https://example.com/alerts", "queued")

		path := "/console/alerts/" + id + "/acknowledge"
		d.wants(d.post(path, url.Values{"note": {"on <it>"}}), "It is noted.", operator+": on &lt;it&gt;")
		if a := d.do("POST", path, url.Values{"rest": {"120"}}); a.status != 400 {
			d.Errorf("a rest without a note: %d", a.status)
		}
		d.wants(d.post(path, url.Values{"rest": {"120"}, "note": {"mended by six"}}), "snoozed until", "mended by six")
		d.wants(d.page("/console/audit"), "snooze alert")
		d.wants(d.page("/console/alerts.csv"), "alert_id,kind,level", "halted,critical,all,1")

		d.wants(d.post("/console/alerts/test", url.Values{"name": {"night"}}), "The test is sent within seconds")
		for path, form := range map[string]url.Values{
			"/console/alerts/x/acknowledge": {}, "/console/alerts/test": {"name": {"nobody"}},
			"/console/alerts/019bb3a2-0000-7000-8000-000000000000/acknowledge": {},
		} {
			if a := d.do("POST", path, form); a.status != 404 {
				d.Errorf("%s: %d", path, a.status)
			}
		}
	})
}

// The files have every alert, in several parts, and the page the newest.
func TestAlerts_Files(t *testing.T) {
	each(t, "2026-01-15T12:00:00Z", func(d *service) {
		d.login()
		const n = 5003 // a part and three
		began := at("2026-01-10T00:00:00Z").UnixMicro()
		columns := strings.Fields("id kind org_id level count title text since_at latest_at fired_at round resolved_at acknowledged_by note")
		d.Rows("alert", columns, n, func(i int) []any {
			return []any{fmt.Appendf(nil, "%016d", i+1), "waiting", flex.OrgID{}.Bytes(), "critical", 1, fmt.Sprintf("number %d.", i), "", began, began, began, 1, began, "", ""}
		})

		csv := d.page("/console/alerts.csv")
		if lines := strings.Count(csv, "\n"); lines != 1+n {
			d.Errorf("%d lines of %d alerts", lines, n)
		}
		d.wants(csv, "number 0.", "number 5002.")
		if lines := strings.Count(d.page("/console/alerts.csv?limit=30"), "\n"); lines != 31 {
			d.Errorf("%d lines of a part of 30", lines)
		}

		if rows := d.file("/console/alerts.*"); len(rows) != n {
			d.Errorf("%d rows of %d alerts", len(rows), n)
		}
	})
}

// An alert of all organisations does not lead to the list of one of them, because the alert
// need not be about that one.
func TestAlerts_SeeOfAll(t *testing.T) {
	for kind, want := range map[operations.Kind]string{
		operations.PayoutWaiting: "/console/fleet#payout_waiting",
		operations.Waiting:       "/console/deliveries?late=yes",
	} {
		if got := console.AlertSee(kind); got != want {
			t.Errorf("%s leads to %s, want %s", kind, got, want)
		}
	}
}

func TestBrowser_Alerts(t *testing.T) {
	d := testScene(t).service
	d.login()
	b := browse(d)
	b.screen("alerts-none", "/console/alerts")
	d.alert()
	b.screen("alerts", "/console/alerts")
}
