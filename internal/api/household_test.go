package api_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestHouseholdEvent has a household's own program ask what its car does, with a token that does nothing
// else, and that ends with the next one, by the organisation's word, and with the site.
func TestHouseholdEvent(t *testing.T) {
	const at = "/vpp/home-assistant/event"
	h := settleIn(t)
	there := h.place()
	site := "/entities/site/" + there["SITE"]
	var home flex.SiteID
	var battery flex.AssetID
	if err := errors.Join(home.UnmarshalText([]byte(there["SITE"])), battery.UnmarshalText([]byte(there["BATTERY"]))); err != nil {
		t.Fatal(err)
	}

	token := func() string {
		h.Helper()
		r := h.want("POST", site+"/home-assistant-token", "", 200, "")
		if r.Header.Get("Cache-Control") != "no-store" {
			h.Errorf("a token may be kept on the way: %v", r.Header)
		}

		return "Authorization: Bearer " + text(h.T, r.body, "access_token")
	}

	former := token()
	own := token()
	h.want("GET", at, "", 401, "", former)

	var event client.HouseholdEvent
	r := h.want("GET", at, "", 200, "", own)
	if err := json.Unmarshal([]byte(r.body), &event); err != nil || event.ImportExport != "import" || !event.EndTime.After(event.StartTime.Time) || event.UpdatedAt.IsZero() {
		t.Errorf("%v: %s", err, r.body)
	}

	h.want("GET", at+"?site_id="+there["SITE"], "", 200, r.body)
	mine, err := client.New(h.url, "acme", h.password).HouseholdEvent(t.Context(), client.SiteID(home))
	if err != nil || mine == nil || *mine != event {
		t.Errorf("the client has %+v, %v", mine, err)
	}

	for _, path := range []string{site, site + "/price-curve", "/entities/asset/" + there["ASSET"], "/entities/asset/" + there["ASSET"] + "/schedule"} {
		h.want("GET", path, "", 403, "", own)
	}

	h.want("POST", "/entities/asset/"+there["ASSET"]+"/event/plug-out", "", 403, "", own)
	h.want("POST", site+"/home-assistant-token", "", 403, "", own)
	h.want("GET", at+"?site_id="+nobodys, "", 404, "", own)
	h.want("GET", at, "", 422, "")
	h.want("GET", at+"?site_id="+nobodys, "", 404, "")
	_, other := h.newOrg("Other", "other")
	h.want("GET", at+"?site_id="+there["SITE"], "", 404, "", "Authorization: Bearer "+other)
	h.want("POST", site+"/home-assistant-token", "", 404, "", "Authorization: Bearer "+other)
	h.want("DELETE", site+"/home-assistant-token", "", 404, "", "Authorization: Bearer "+other)
	h.want("GET", at, "", 200, "", own)

	h.want("POST", "/entities/asset/"+there["ASSET"]+"/event/plug-out", "", 200, "null")
	err = h.server.Access.DB.Write(t.Context(), h.org.ID, func(tx *store.Tx) error {
		b, err := tx.Battery(t.Context(), battery)
		b.Plan.Modes = ""
		if err == nil {
			err = tx.PutBatteryPlan(t.Context(), b.Asset.ID, b.Plan)
		}

		return err
	})

	if err != nil {
		t.Fatal(err)
	}

	h.want("GET", at, "", 200, "null", own)

	for range 2 {
		h.want("DELETE", site+"/home-assistant-token", "", 204, "")
		h.want("GET", at, "", 401, "", own)
	}

	own = token()
	h.want("POST", site+"/offboard-site-and-assets", "", 200, "")
	if r := h.ask("GET", at, "", own); r.StatusCode != 401 && r.StatusCode != 404 { // 404 while the token is believed
		t.Errorf("of a home that is gone: %d %s", r.StatusCode, r.body)
	}

	h.want("POST", site+"/home-assistant-token", "", 404, "")
}

// TestHouseholdToken shows that a site has one token, which lives for years and reads its own site's event alone.
func TestHouseholdToken(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		site, browser := h.component("user-1")
		neighbour, _ := h.component("user-2")
		issue := func(site string) string {
			r := h.want("POST", "/entities/site/"+site+"/home-assistant-token", "", 200, "")
			if expires, err := time.Parse(time.RFC3339, text(h.T, r.body, "expires_at")); err != nil || time.Until(expires) < 9*365*24*time.Hour {
				t.Errorf("%v: it ends at %v", err, expires)
			}
			return "Authorization: Bearer " + text(h.T, r.body, "access_token")
		}

		own, theirs := issue(site), issue(neighbour)
		again := issue(site)
		h.want("GET", "/vpp/home-assistant/event", "", 401, "", own)
		h.want("GET", "/vpp/home-assistant/event", "", 200, "null", again)
		h.want("GET", "/vpp/home-assistant/event", "", 200, "null", theirs)
		h.want("GET", "/vpp/home-assistant/event", "", 200, "null", browser)
		h.want("GET", "/auth/users/me/", "", 200, `{"username":"acme","roles":["vpp:home_assistant"]}`, again)
		h.want("GET", "/entities/site/"+site, "", 403, `{"detail":"the token lacks the role entity_read"}`, again)

		money, err := h.server.Access.Issue(t.Context(), access.Principal{Org: h.org.ID, Username: "acme", Roles: []flex.Role{flex.Rewards}}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}

		h.want("GET", "/vpp/home-assistant/event?site_id="+site, "", 403, "", "Authorization: Bearer "+money.Token.Reveal())
	})
}
