package console_test

import (
	"net/url"
	"testing"

	"flexd/internal/console"
	"flexd/internal/delivery"
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
	if err := d.push.Halt(d.Context(), delivery.HaltOrder{Who: operator, Reason: "a firmware fault"}); err != nil {
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

// An alert of all organisations does not lead to the list of one of them, which need not be whose it is.
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
