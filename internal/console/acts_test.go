package console_test

import (
	"net/url"
	"strings"
	"testing"
)

// Actions on assets are previewed, confirmed, and recorded in the audit log. An action that
// cannot be undone needs a typed word.
func TestActs(t *testing.T) {
	s := testScene(t)
	d := s.service
	d.wants(d.page("/console/assets"), `form="acts"`, "All that match the filters, the first 500 at most", "Charge now")
	d.wants(d.page("/console/assets/"+s.assets[plain].String()), `<h2>Actions</h2>`, `name="id" value="`+s.assets[plain].String()+`"`)

	const base = "/console/assets/selection"
	form := func(action string, more ...string) url.Values {
		v := url.Values{"action": {action}, "hours": {"2"}, "by": {"06:30"}, "id": {s.assets[plain].String(), s.assets[idle].String()}}
		for i := 0; i+1 < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}

	shown := d.do("POST", base+"/preview", form("replan"))
	d.wants(shown.body, "I am sure: 1 asset", "No car is plugged in", "may charge")
	d.wants(d.do("POST", base+"/preview", form("ready-by", "all", "on", "plugged", "on")).body, "ready by 06:30")

	// The way back is to the list with its filters, from the preview and from the result.
	filtered := d.do("POST", base+"/preview", form("exclude", "type", "charger", "plugged", "on"))
	d.wants(filtered.body, `<a href="/console/assets?plugged=on&amp;type=charger">Do nothing</a>`, `name="type" value="charger"`)
	d.wants(d.page("/console/deliveries?asset="+s.assets[plain].String()), `name="asset" type="checkbox" value="`+s.assets[plain].String()+`" checked`)

	// All that a filter takes are those, not more.
	if body := d.do("POST", base+"/preview", form("ready-by", "all", "on", "model", "no such model")).body; strings.Contains(body, "ready by 06:30") {
		t.Errorf("an action on all of a model that no asset has: %s", body)
	}

	for _, bad := range []url.Values{form("replan"), form("dance", "sure", "on"), form("charge-now", "hours", "x", "sure", "on"), form("ready-by", "by", "x", "sure", "on"), form("offboard", "sure", "on", "typed", "offboard 1")} {
		if a := d.do("POST", base, bad); a.status/100 != 4 {
			t.Errorf("%v: %d", bad, a.status)
		}
	}

	done := d.do("POST", base, form("charge-now", "sure", "on"))
	d.wants(done.body, "not done", "may charge")
	d.wants(d.page("/console/audit"), "charge-now assets", "1 of 2; ")

	d.wants(d.do("POST", base, form("exclude", "sure", "on")).body, "Excluded from control until it is included again")
	d.wants(d.page("/console/assets/"+s.assets[plain].String()), "excluded since", "Control ended", "no plug-out came since")
	d.wants(d.do("POST", base+"/preview", form("offboard")).body, "type “offboard 2”")
	d.wants(d.do("POST", base, form("offboard", "typed", "offboard 2")).body, "Taken away for good")
	if a := d.get("/console/assets/" + s.assets[plain].String()); a.status != 404 {
		t.Errorf("the page of an asset that is away: %d", a.status)
	}
}
