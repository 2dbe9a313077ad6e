package console_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// turner is a sandbox clock that is turned without the background jobs.
type turner struct{ d *service }

func (c turner) Clock(context.Context, flex.OrgID) (time.Time, bool, error) {
	return c.d.db.Now(), true, nil
}

func (c turner) Advance(ctx context.Context, org flex.OrgID, to time.Time) error {
	return c.d.db.Write(ctx, org, func(tx *store.Tx) error {
		if to.Before(tx.Now()) {
			return flex.Fail(flex.Malformed, "the clock only goes forward")
		}
		return tx.SetClock(ctx, to.Sub(c.d.db.Now()))
	})
}

func TestDeveloper(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.server.Clock = turner{d}
		d.login()
		base := "/console/developer/" + d.Org.String()
		page := d.page("/console/developer")
		d.wants(page, "Over the clock change", `value="2026-03-29T02:00:00Z"`, `value="2026-01-15T14:00:00Z"`, `value="2026-01-15T00:00:00Z"`, "No requests yet.", "1099000010023", "Not domestic: not eligible.")
		d.wants(d.post(base+"/plug/in", url.Values{"asset": {s.assets[idle].String()}, "need_kwh": {"12"}, "ready_by": {"06:30"}, "off_peak": {"00:30-05:30"}}), "A car is plugged in.")
		d.wants(d.page("/console/assets/"+s.assets[idle].String()), "needs 12 kWh by Thu 15 Jan, 06:30")
		d.wants(d.post(base+"/plug/out", url.Values{"asset": {s.assets[idle].String()}}), "The car is unplugged.")
		d.wants(d.post(base+"/clock", url.Values{"to": {"2026-01-15T14:00:00Z"}}), "The clock is turned", "Thu 15 Jan, 14:00:00")

		for _, bad := range []string{"2026-01-15T13:00:00Z", "soon", ""} {
			if a := d.do("POST", base+"/clock", url.Values{"to": {bad}}); a.status != 400 {
				t.Errorf("turned to %q: %d", bad, a.status)
			}
		}
		d.wants(page, "type “turn”")
		far := url.Values{"to": {"2026-01-16T16:00:00Z"}}
		if a := d.do("POST", base+"/clock", far); a.status != 400 {
			t.Errorf("26 hours that nobody typed for: %d", a.status)
		}

		far.Set("typed", "turn")
		d.wants(d.post(base+"/clock", far), "The clock is turned", "Fri 16 Jan, 16:00:00")
		a := d.do("POST", base+"/credentials", url.Values{"username": {"robot"}, "role": {"entity_read"}})
		_, secret, found := strings.Cut(a.body, `id="secret">`)
		if !found {
			t.Fatalf("new credential: %d %s", a.status, a.body)
		}
		secret, _, _ = strings.Cut(secret, "<")
		if _, err := d.access.Login(t.Context(), "robot", flex.Secret(secret), "here"); err != nil {
			t.Errorf("with the password that was shown: %v", err)
		}

		if a := d.do("POST", base+"/credentials", url.Values{"username": {"other"}}); a.status != 400 {
			t.Errorf("without a role: %d", a.status)
		}
		print := strings.Repeat("AB:", 31) + "AB"
		bind := base + "/credentials/bind"
		d.wants(d.post(bind, url.Values{"username": {"robot"}, "certificates": {print + "\n" + strings.Repeat("c", 64)}}), "need one of them", strings.Repeat("ab", 32)+" "+strings.Repeat("c", 64))
		if _, err := d.access.Login(t.Context(), "robot", flex.Secret(secret), "here"); flex.KindOf(err) != flex.Unauthorized {
			t.Errorf("bound to certificates, and let in without: %v", err)
		}
		if a := d.do("POST", bind, url.Values{"username": {"robot"}, "certificates": {"ab"}}); a.status != 422 && a.status != 400 {
			t.Errorf("bound to what is no fingerprint: %d", a.status)
		}

		d.wants(d.post(bind, url.Values{"username": {"robot"}}), "none asked for")
		for _, typed := range []string{"", "revoke", "other"} {
			a := d.do("POST", base+"/credentials/revoke", url.Values{"username": {"robot"}, "typed": {typed}})
			if a.status != 400 || !strings.Contains(a.body, "to say that you mean it") {
				t.Errorf("revoked by typing %q: %d", typed, a.status)
			}
		}

		if _, err := d.access.Login(t.Context(), "robot", flex.Secret(secret), "here"); err != nil {
			t.Errorf("not revoked, and not let in: %v", err)
		}
		d.wants(d.post(base+"/credentials/revoke", url.Values{"username": {"robot"}, "typed": {"robot"}}), `<span class="tag bad">revoked</span>`)
		if _, err := d.access.Login(t.Context(), "robot", flex.Secret(secret), "here"); flex.KindOf(err) != flex.Unauthorized {
			t.Errorf("revoked, and let in: %v", err)
		}

		d.access.RecordRequest(d.Org, access.LoggedRequest{At: d.db.Now(), ID: "r1", User: "robot", Method: "POST", Path: "/entities/site", Status: 422, Refusal: "no <mpan>"}, []byte(`{"email":"jo@home.example"}`))
		d.wants(d.page("/console/developer"), "POST /entities/site", "no &lt;mpan&gt;", `{&#34;email&#34;:&#34;[redacted]&#34;}`)
		if strings.Contains(d.page("/console/developer.json"), "jo@home") {
			t.Error("a body is shown as it was")
		}
		if a := d.do("POST", base+"/endpoint", url.Values{"url": {"http://127.0.0.1:9/{external_id}"}}); a.status != 200 || !strings.Contains(a.body, `id="secret">whsec_`) {
			t.Errorf("set an endpoint: %d", a.status)
		}
		if a := d.do("POST", base+"/endpoint", url.Values{"url": {"http://127.0.0.1:10/{external_id}"}}); a.status != 303 {
			t.Errorf("set it again: %d", a.status)
		}
		d.wants(d.page("/console/audit"), "turn sandbox clock", "add credential", "bind credential", "revoke credential", "play plug in", "set endpoint")
	})
}

func TestBrowser_Developer(t *testing.T) {
	d := testScene(t).service
	d.server.Clock = turner{d}
	d.login()
	d.access.RecordRequest(d.Org, access.LoggedRequest{At: d.db.Now(), ID: "019b7d52-5b0c-7d1e-9a53-6f1f0c1e7a55", User: "moorland", Method: "POST", Path: "/entities/asset/{asset_id}/event/plug-in", Status: 200, Took: 3e6},
		[]byte(`{"intent":{"energy_required_kwh":20,"charging_mode":"minimise_charging_time"},"note":"for Jo"}`))
	for _, name := range []string{"moorland", "moorland-readings"} {
		d.do("POST", "/console/developer/"+d.Org.String()+"/credentials", url.Values{"username": {name}, "role": {"entity_read", "entity_write", "rewards", "lookup", "metrics_write", "components"}})
	}
	b := browse(d)
	b.screen("developer", "/console/developer")
}

// The form of the endpoint is filled with its settings: changing the URL does not change the
// format of what is sent.
func TestDeveloper_EndpointForm(t *testing.T) {
	each(t, "2026-01-13T12:00:00Z", func(d *service) {
		d.login()
		d.wants(d.page("/console/developer"), `required value="" placeholder`, `value="on"><label for="bare">`)

		settings := delivery.Settings{URL: "http://127.0.0.1:9/{external_id}", Bare: true}
		if _, _, err := d.push.SetEndpoint(d.Context(), d.Org, flex.ScheduleEndpoint, settings); err != nil {
			d.Fatal(err)
		}
		d.wants(d.page("/console/developer"), `required value="http://127.0.0.1:9/{external_id}"`, `value="on" checked><label for="bare">`, `value="on"><label for="nulls">`)
	})
}
