package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/console"
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
)

// bea is an operator of Fen Power alone, in a console that Moorland Energy has a fleet in.
const bea, beasPassword = "bea", "another horse battery"

// idTables are the records that routes name by an id.
var idTables = map[string]string{
	"asset": "id", "site": "id", "held_reading": "id", "instruction": "id", "flex_event": "id", "schedule": "event_id", "delivery": "event_id",
	"withdrawal": "id", "settlement_run": "id", "alert": "id",
}

// neighbours is a scene with something of everything at Moorland, and a little at Fen Power.
func neighbours(t *testing.T) (s *scene, fen flex.Org, own flex.AssetID) {
	t.Helper()
	s = testScene(t)
	half := flex.PeriodAt(at("2026-01-14T12:00:00Z")).Span()
	batch := []reading.Input{{AssetID: s.assets[plain], Span: half, Label: flex.ChargerEnergy, Value: 510}}
	if _, err := (&reading.Service{DB: s.db}).Store(s.Context(), s.Org, batch); err != nil {
		t.Fatal(err)
	}

	s.login()
	s.post("/console/instructions/send", s.peakForm(url.Values{"typed": {"send"}}))
	s.Events(flex.Day{Year: 2026, Month: 1, Dom: 12}, 30, 34)

	fen, err := s.db.AddOrg(t.Context(), "Fen Power")
	if err != nil {
		t.Fatal(err)
	}

	theirs := s.As(fen.ID)
	own = theirs.Asset(theirs.Site(flex.FullScheduleMethod), flex.Charger, 7400)
	s.Exec(`UPDATE asset SET external_id = 'FEN-1' WHERE id = $1`, own.Bytes())

	if _, err := s.access.AddOperator(t.Context(), bea, beasPassword, access.Viewer); err != nil {
		t.Fatal(err)
	}
	if err := s.access.SetOperatorOrgs(t.Context(), bea, access.OperatorOrgs{Names: []string{fen.Name}}); err != nil {
		t.Fatal(err)
	}

	s.alerted(s.Org, "CP-2041 is refused", "Moorland's duty")
	s.alerted(fen.ID, "FEN-1 is refused", "the duty of Fen")
	s.alerted(flex.OrgID{}, "prices of Moorland Energy are late", "everybody's duty at post.example")

	return s, fen, own
}

// alerted makes an alert of the organisation fire, which has its own rule and is sent by its
// own route.
func (s *scene) alerted(org flex.OrgID, title, duty string) {
	s.Helper()
	ctx := s.Context()
	err := s.db.WriteAll(ctx, func(all *store.All) error {
		a, err := all.NoteAlert(ctx, flex.Alert{Kind: "refused", Org: org, Level: "critical", Count: 1, Title: title})
		if err != nil {
			return err
		}

		r := store.AlertRoute{Name: duty, Kind: "webhook", Target: "https://example.com/" + url.PathEscape(duty), Level: "critical", Org: org}
		if err := all.AddAlertRoute(ctx, &r); err != nil {
			return err
		}
		if _, err := all.FireAlert(ctx, a); err != nil {
			return err
		}
		if err := all.PutAlertRule(ctx, store.AlertRule{Kind: "refused", Org: org, Enabled: true, Threshold: 7}); err != nil {
			return err
		}

		return all.BeginAct(ctx, &flex.AuditEntry{Who: operator, Act: "set caps", Org: org, Subject: title})
	})
	if err != nil {
		s.Fatal(err)
	}
}

// loginAs logs bea in.
func (d *service) loginAs(name, password string) {
	d.Helper()
	d.cookie = nil
	a := d.do("POST", "/console/login", url.Values{"name": {name}, "password": {password}})
	if a.status != http.StatusSeeOther {
		d.Fatalf("%s logs in: %d %s", name, a.status, a.body)
	}
	d.cookie = a.cookie(d)
}

// idsOf returns some ids of Moorland's records, by table.
func (s *scene) idsOf(table string) (ids []string) {
	s.Helper()
	for _, text := range s.Strings(`SELECT DISTINCT lower(hex(`+idTables[table]+`)) FROM `+table+` WHERE org_id = $1 ORDER BY 1 LIMIT 400`, s.Org.Bytes()) {
		ids = append(ids, s.idOf(text))
	}
	return ids
}

// idOf is the text of an id in hexadecimal digits.
func (s *scene) idOf(text string) string {
	s.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 16 {
		s.Fatalf("an id: %q %v", text, err)
	}

	return flex.OrgID(raw).String()
}

// walker asks every route for what is Moorland's.
type walker struct {
	*scene
	secrets []string            // what nobody else may see
	ids     map[string][]string // by table
}

func newWalker(s *scene) *walker {
	s.Helper()
	w := &walker{scene: s, secrets: []string{"Moorland", s.Org.String(), "CP-2041", "CP-2058", "post.example", "2000000010007", "evening peak"}, ids: map[string][]string{}}
	w.secrets = append(append(w.secrets, "everybody's duty"), addresses...)
	for table := range idTables {
		w.ids[table] = s.idsOf(table)
		w.secrets = append(w.secrets, w.ids[table]...)
	}
	return w
}

// paths are the addresses by which a route can be asked for what is Moorland's.
func (w *walker) paths(pattern string) (paths []string) {
	pattern = strings.NewReplacer("{org}", w.Org.String(), "{name}", "schedule", "{act}", "test", "{way}", "in").Replace(pattern)
	to := "release"
	if strings.Contains(pattern, "withdrawals") {
		to = "approved"
	}

	pattern = strings.Replace(pattern, "{to}", to, 1)
	if !strings.Contains(pattern, "{id}") {
		return []string{pattern, pattern + "?org=" + w.Org.String(), pattern + "?org=" + w.Org.String() + "&q=CP-2041", pattern + "?q=evening"}
	}

	for _, ids := range w.ids {
		if len(ids) > 0 {
			paths = append(paths, strings.Replace(pattern, "{id}", ids[0], 1))
		}
	}

	return paths
}

// form has every field that an act may want, and Moorland's ids in them.
func (w *walker) form(pattern string) url.Values {
	typed := "send"
	for end, word := range map[string]string{
		"instructions/stop":      "stop all",
		"{id}/stop":              "stop",
		"{id}/charger":           "",
		"products/{id}/withdraw": "withdraw",
		"products/import":        "invite",
		"programs/bind":          "bind",
		"{org}/selection":        "approve",
		"withdrawals/{id}/{to}":  "approve",
		"/payments":              "export",
		"/{act}":                 "new secret",
		"/clock":                 "turn",
		"consent/withdraw":       "withdraw",
		"held/{id}/{to}":         "release",
	} {
		if strings.HasSuffix(pattern, end) {
			typed = word
		}
	}

	return w.peakForm(url.Values{
		"typed": {typed}, "sure": {"on"}, "name": {"acme"}, "username": {"acme"}, "url": {"https://else.example/push"}, "kw": {"5"}, "starts": {"1"},
		"asset": {w.assets[plain].String()}, "role": {"viewer"}, "minutes": {"5"}, "from": {"2026-01-15T00:00"}, "to": {"2026-01-15T06:00"},
		"csv":  {"reference,service,start_timestamp,end_timestamp,volume_kw,price_gbp_per_mwh\nA,dfs,2026-01-15T20:00:00Z,2026-01-15T21:00:00Z,1,250\n"},
		"amps": {"60"}, "power": {"3"}, "mode": {"minimise"}, "confirm_password": {beasPassword},
	})
}

// shown are the secrets that an answer has beside what it was asked for by.
func (w *walker) shown(a answer, path string, form url.Values) (found []string) {
	asked := path + form.Encode()
	for _, secret := range w.secrets {
		if !strings.Contains(asked, secret) && strings.Contains(a.body+fmt.Sprint(a.header), secret) {
			found = append(found, secret)
		}
	}
	return found
}

// state is Moorland's records, as a hash of every table that has an organisation.
func (s *scene) state() map[string]string {
	s.Helper()
	hashes := map[string]string{}
	for _, table := range s.Strings(`SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'org_id' WHERE m.type = 'table' ORDER BY 1`) {
		if slices.Contains([]string{"audit", "operator_org"}, table) {
			continue
		}

		columns := s.Strings(`SELECT 'quote(' || name || ')' FROM pragma_table_info('` + table + `')`)
		lines := s.Strings(`SELECT `+strings.Join(columns, `||','||`)+` FROM `+table+` WHERE org_id = $1 ORDER BY 1`, s.Org.Bytes())
		sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
		hashes[table] = hex.EncodeToString(sum[:])
	}
	return hashes
}

// An operator of one organisation sees and changes nothing of another's, by any route and in
// any role. The answers are as if it did not exist.
func TestOperatorOrgs_EveryRoute(t *testing.T) {
	s, _, _ := neighbours(t)
	w := newWalker(s)
	for table, ids := range w.ids {
		if len(ids) == 0 && !slices.Contains([]string{"withdrawal", "settlement_run", "delivery"}, table) {
			t.Errorf("the scene has no %s", table)
		}
	}

	before := s.state()
	for _, role := range access.OperatorRoles() {
		if err := s.access.SetOperatorRole(t.Context(), bea, role); err != nil {
			t.Fatal(err)
		}

		s.loginAs(bea, beasPassword)
		w.walk(string(role))
	}

	for table, hash := range s.state() {
		if before[table] != hash {
			t.Errorf("%s of Moorland's was changed", table)
		}
	}

	// The walk finds what it looks for where it is shown.
	s.loginAs(operator, password)
	found := 0
	for _, path := range []string{"/console/assets", "/console/deliveries.json", "/console/search?q=CP-2041", "/console/fleet", "/console/instructions", "/console/settlement"} {
		if len(w.shown(s.get(path), "", nil)) > 0 {
			found++
		}
	}
	if found < 5 {
		t.Errorf("of six pages that show Moorland's to an operator of all, the walk finds it on %d", found)
	}
}

// walk asks every route for Moorland's in bea's name.
func (w *walker) walk(role string) {
	w.Helper()
	for _, rt := range console.Surface() {
		method, pattern, _ := strings.Cut(rt.Pattern, " ")
		if rt.Public || strings.HasSuffix(pattern, "/live") {
			continue
		}

		var form url.Values
		if method == "POST" {
			form = w.form(pattern)
			w.loginAs(bea, beasPassword)
		}

		for _, path := range w.paths(pattern) {
			a := w.do(method, path, form)
			if found := w.shown(a, path, form); len(found) > 0 {
				w.Errorf("%s: %s %s (%d) shows %q", role, method, path, a.status, found)
			}

			named := strings.Contains(pattern, "{org}") || strings.Contains(pattern, "{id}")
			if named && a.status != http.StatusNotFound && a.status != http.StatusForbidden {
				w.Errorf("%s: %s %s: %d %.300s", role, method, path, a.status, a.body)
			}
		}
	}
}

// What is theirs they have: in lists, in sums, by a search, and to act on.
func TestOperatorOrgs_Own(t *testing.T) {
	s, fen, own := neighbours(t)
	s.loginAs(bea, beasPassword)
	s.wants(s.page("/console/fleet.json"), `"sites":1,"assets":1`)
	s.wants(s.page("/console/assets"), "FEN-1")
	s.wants(s.page("/console/assets/"+own.String()), "FEN-1")
	s.wants(s.page("/console/safety"), "Fen Power")
	s.wants(s.page("/console/alerts"), "FEN-1 is refused", "the duty of Fen")
	s.wants(s.page("/console/audit"), "FEN-1 is refused", "set caps")

	for path, lines := range map[string]int{"/console/alerts.csv": 1, "/console/audit.csv": 1} {
		if got := strings.Count(s.page(path), "FEN-1"); got != lines {
			t.Errorf("%s has %d lines of theirs, want %d", path, got, lines)
		}
	}
	if a := s.get("/console/search?q=FEN-1"); a.status != http.StatusSeeOther {
		t.Errorf("a search for their own: %d", a.status)
	}

	menu := s.page("/console/developer?org=" + fen.ID.String())
	if strings.Contains(menu, "/console/engine") || strings.Contains(menu, "/console/operators") || !strings.Contains(menu, "/console/readings") {
		t.Error("the menu leads to what they may not see, or not to what they may")
	}

	if err := s.access.SetOperatorRole(t.Context(), bea, access.Admin); err != nil {
		t.Fatal(err)
	}

	form := url.Values{"username": {"fen-app"}, "role": {"entity_read"}}
	if a := s.do("POST", "/console/developer/"+fen.ID.String()+"/credentials", form); a.status != http.StatusOK {
		t.Errorf("a credential of their own organisation: %d %s", a.status, a.body)
	}

	firing := s.idOf(s.Strings(`SELECT lower(hex(id)) FROM alert WHERE title LIKE 'FEN-1%'`)[0])
	if a := s.do("POST", "/console/alerts/"+firing+"/acknowledge", url.Values{"note": {"mine"}}); a.status != http.StatusSeeOther {
		t.Errorf("an alert of their own organisation is acknowledged: %d %s", a.status, a.body)
	}

	if a := s.do("POST", "/console/safety/halt", url.Values{"reason": {"because"}}); a.status != http.StatusForbidden {
		t.Errorf("all pushes halted by an operator of one: %d", a.status)
	}

	// An operator of none sees nobody's, and one of all again everybody's.
	s.loginAs(operator, password)
	if a := s.do("POST", "/console/operators/orgs", url.Values{"name": {bea}}); a.status != http.StatusSeeOther {
		t.Errorf("set: %d %s", a.status, a.body)
	}

	s.wants(s.page("/console/operators"), "<td>none</td>")
	if a := s.do("POST", "/console/operators/orgs", url.Values{"name": {operator}, "every": {"1"}}); a.status != http.StatusConflict {
		t.Errorf("their own: %d", a.status)
	}

	s.loginAs(bea, beasPassword)
	s.wants(s.page("/console/fleet.json"), `"sites":0,"assets":0`)
	if err := s.access.SetOperatorOrgs(t.Context(), bea, access.OperatorOrgs{Every: true}); err != nil {
		t.Fatal(err)
	}

	s.wants(s.page("/console/assets"), "CP-2041", "FEN-1")
}
