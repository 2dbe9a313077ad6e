package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"flexd/internal/flex"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/test/axe"
	"flexd/test/browser"
)

// caller asks an interface with a token.
type caller struct {
	*testing.T
	base, token string
}

func (c caller) ask(method, path string, form url.Values, body string) (answer map[string]any) {
	c.Helper()
	kind := "application/json"
	if form != nil {
		kind, body = "application/x-www-form-urlencoded", form.Encode()
	}
	r, err := http.NewRequestWithContext(c.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}

	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "Bearer "+c.token)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	if a.StatusCode/100 != 2 {
		c.Fatalf("%s %s: %d %s", method, path, a.StatusCode, text)
	}

	_ = json.Unmarshal(text, &answer)
	return answer
}

// The element shows a household's two cars, one of them plugged in, on another site's page, in
// two languages, with a component token. It starts and ends charge-now, and shows a message
// when the token is no longer valid.
var asOfField = regexp.MustCompile(`"as_of": ?"[^"]+"`)

func TestElement(t *testing.T) {
	browser := browser.Tab(t)
	s := &troubles{T: t, database: freshDatabase(t)}
	h := s.serve()
	defer h.Close()
	s.Seed = storetest.NewSeed(t, h.DB, s.database)
	var looks atomic.Int64 // how often somebody asked for a site as it is
	var refuse atomic.Bool // whether events are refused
	var later atomic.Int64 // nanoseconds that the answers are from later than now
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/live") {
			looks.Add(1)
		}

		if r.Method == "POST" && refuse.Load() {
			r.Header.Set("Authorization", "Bearer flexd_none")
		}
		if later.Load() == 0 {
			h.Handler().ServeHTTP(w, r)
			return
		}

		answer := httptest.NewRecorder()
		h.Handler().ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		asOf := time.Now().Add(time.Duration(later.Load())).UTC().Format(time.RFC3339)
		w.Write(asOfField.ReplaceAll(answer.Body.Bytes(), []byte(`"as_of":"`+asOf+`"`)))
	}))
	defer service.Close()

	var prices []flex.PricedPeriod
	// two hours are cheaper than the median, which replaces a missing price: a car that needs
	// more charges at no known price
	for i, price := range []float64{14, 15, 10, 10, 10, 10, 13, 14, 15, 400} {
		prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(time.Now()).Add(i), Known: true, Price: flex.FromGBPPerMWh(price)})
	}
	if err := h.Publish(t.Context(), "elexon-mid", time.Now().Add(-time.Minute), prices); err != nil {
		t.Fatal(err)
	}

	if _, err := h.Access.AddCredential(t.Context(), s.Org, "me", "a password of some length", flex.Roles, records.CredentialLimits{}); err != nil {
		t.Fatal(err)
	}
	login, err := h.Access.Login(t.Context(), "me", "a password of some length", "test")
	if err != nil {
		t.Fatal(err)
	}

	markup := ""
	embedding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src "+service.URL+"; connect-src "+service.URL)
		io.WriteString(w, markup)
	}))
	defer embedding.Close()

	me := caller{t, service.URL, login.Token.Reveal()}
	household := func(user string) (site, token string) {
		made := me.ask("POST", "/auth/component-token", url.Values{"external_user_id": {user}, "allowed_origin": {embedding.URL}, "gave_boundary_meter_consent_at": {"2026-01-15T10:30:00Z"}}, "")
		return made["id"].(string), made["access_token"].(string)
	}

	plugIn := func(name, site, kwh string, controlled bool) {
		asset := me.ask("POST", "/entities/asset", nil, fmt.Sprintf(`{"external_id": %q, "type": "charger", "properties": {"power_kw": 7.4}, "site_id": %q}`, name, site))
		if kwh == "" {
			return
		}
		if controlled {
			me.ask("POST", "/entities/site/"+site+"/dispatch-consent", nil, `{"dispatch_methods": ["full_asset_schedule_control"]}`)
		}
		me.ask("POST", "/entities/asset/"+asset["id"].(string)+"/event/plug-in", nil, `{"tariff": {"off_peak_times": "00:00-24:00", "timezone": "Europe/London"},
			"intent": {"energy_required_kwh": `+kwh+`, "ready_by": "2026-01-01T`+time.Now().In(flex.London).Add(8*time.Hour).Format("15:04")+`:00Z", "charging_mode": "minimise_charging_time"}}`)
	}

	site, token := household("user-7")
	plugIn("charger <7>", site, "12", true)
	plugIn("charger-8", site, "", false)
	look := func(site, language, token, until string) string {
		t.Helper()
		markup = fmt.Sprintf(`<!doctype html><html lang="en"><head><title>Mine</title><script type="module" src="%s/balance/element.js"></script></head>
			<body><main><h1>Mine</h1><h2>Tonight</h2><flexd-household site=%q token=%q lang=%q></flexd-household></main></body></html>`, service.URL, site, token, language)
		if err := chromedp.Do(browser, chromedp.Navigate(embedding.URL)); err != nil {
			t.Fatal(err)
		}
		return shownUntil(t, browser, until)
	}

	for language, want := range map[string][]string{
		"en": {"It charges ", " kWh by ", "At market prices that costs £", "No car is plugged in.", "Charge for an hour now", "charger <7>", "charger-8"},
		"de": {"Es lädt ", " kWh bis ", "Zu Marktpreisen kostet das ", "Es ist kein Auto angesteckt.", "Jetzt eine Stunde laden"},
	} {
		text := look(site, language, token, want[0])
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q lacks %q", language, text, w)
			}
		}
		if n := strings.Count(text, "[on]"); n < 1 || !strings.Contains(text, "[off]") {
			t.Errorf("%s: the picture has %d filled bars: %s", language, n, text)
		}
	}

	if axe.Wanted() {
		if violations, err := axe.Violations(browser); err != nil || len(violations) > 0 {
			t.Error(violations, err)
		}
	}

	look(site, "en", token, "Charge for an hour now")
	press(t, browser, "Charge for an hour now")
	shownUntil(t, browser, "Back to the plan")
	press(t, browser, "Back to the plan")
	shownUntil(t, browser, "Charge for an hour now")
	refuse.Store(true)
	press(t, browser, "Charge for an hour now")
	shownUntil(t, browser, "This cannot be shown")
	refuse.Store(false)

	looks.Store(0)
	look(site, "fr", "flexd_none", "This cannot be shown")
	if n := looks.Load(); n != 1 {
		t.Errorf("site, token and lang were asked for %d times, want once", n)
	}
	look(site, "en", "", "Nothing can be shown: the page gives no site or no token.")

	uncontrolled, other := household("user-8")
	plugIn("charger-9", uncontrolled, "12", false)
	if text := look(uncontrolled, "en", other, "it is not controlled"); strings.Contains(text, "Charge for an hour now") {
		t.Errorf("a car without a plan: %s", text)
	}
	if text := look(site, "en", other, "This cannot be shown"); strings.Contains(text, "No car is plugged in.") {
		t.Errorf("another's site: %s", text)
	}

	later.Store(int64(8*time.Hour + time.Minute))
	if text := look(site, "en", token, "the plan was over"); strings.Contains(text, "It charges ") || strings.Contains(text, "[on]") {
		t.Errorf("after ready-by: %s", text)
	}
	look(site, "de", token, "ist der Plan vorbei")
	later.Store(int64(7 * time.Hour))
	look(site, "en", token, "It was planned to charge ")
	later.Store(0)

	long, third := household("user-9")
	plugIn("charger-10", long, "50", true)
	if text := look(long, "en", third, "No price is known for the hours"); !strings.Contains(text, "[on unpriced]") {
		t.Errorf("a plan beyond the known prices: %s", text)
	}
}

// shownUntil waits until the element shows a text. It returns all its texts, and a word for
// each bar.
func shownUntil(t *testing.T, browser context.Context, text string) (shown string) {
	t.Helper()
	const read = `(() => { const r = document.querySelector("flexd-household")?.shadowRoot; return r ? [...r.querySelectorAll("h3,p,button")].map((e) => e.textContent).concat([...r.querySelectorAll("rect")].map((e) => "[" + e.getAttribute("class") + "]")).join("\n") : "" })()`
	for range 600 {
		var err error
		shown, err = chromedp.Run(browser, chromedp.Evaluate[string](read))
		if err != nil {
			t.Fatal(err)
		}

		if strings.Contains(shown, text) {
			return shown
		}
		time.Sleep(100 * time.Millisecond)
	}

	t.Fatalf("after a minute it shows %q, and not %q", shown, text)
	return ""
}

func press(t *testing.T, browser context.Context, button string) {
	t.Helper()
	done, err := chromedp.Run(browser, chromedp.Evaluate[bool](fmt.Sprintf(
		`(() => { const b = [...document.querySelector("flexd-household").shadowRoot.querySelectorAll("button")].find((b) => b.textContent === %q); b?.click(); return Boolean(b) })()`, button)))
	if err != nil || !done {
		t.Fatalf("%s: %v, %v", button, done, err)
	}
}
