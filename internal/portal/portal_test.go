package portal_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/portal"
	"flexd/internal/product"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// home is a site whose user has earned £25, seen through its pages.
type home struct {
	db      *store.DB
	service *reward.Service
	org     flex.OrgID
	site    flex.SiteID
	now     time.Time
	server  *httptest.Server
	letter  string

	browser *http.Client
}

// client gives the visitor a browser that keeps cookies.
func (h *home) client(t *testing.T) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	h.browser = &http.Client{Jar: jar}
}

func open(t *testing.T) *home {
	t.Helper()
	h := &home{browser: http.DefaultClient, site: flex.SiteID{9}, now: time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)}
	url := storetest.SQLite(t)
	h.db = storetest.Open(t, url, store.Options{Now: func() time.Time { return h.now }})
	org, err := h.db.AddOrg(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}

	h.org = org.ID
	if err := storetest.Exec(t, url, `INSERT INTO site (id, org_id, email, consent_at, created_at) VALUES ($1, $2, 'ann@example.com', NULL, 0)`, h.site.Bytes(), h.org.Bytes()); err != nil {
		t.Fatal(err)
	}

	h.service = &reward.Service{DB: h.db, Mail: func(_ context.Context, _ flex.Personal, _, text string) error { h.letter = text; return nil }}
	s := &portal.Server{Reward: h.service, Control: &control.Service{DB: h.db}, Products: &product.Service{DB: h.db}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	h.server = httptest.NewServer(s.Handler())
	t.Cleanup(h.server.Close)
	h.service.BaseURL = h.server.URL
	err = h.db.Write(t.Context(), h.org, func(tx *store.Tx) error {
		if err := tx.SetSettings(t.Context(), flex.OrgSettings{Payout: flex.PayoutSettings{WithoutCode: true}}); err != nil {
			return err
		}

		tr := ledger.Booked{}
		tr.Key, tr.Kind, tr.SiteID, tr.Time = "bonus", ledger.SignupBonus, h.site, flex.Span{From: h.now}
		tr.Cause, tr.Postings = ledger.Cause{By: "test"}, ledger.Given(2500)
		_, err := tx.Post(t.Context(), &tr)

		return err
	})

	if err != nil {
		t.Fatal(err)
	}

	return h
}

func (h *home) link(t *testing.T, o reward.LinkOptions) string {
	t.Helper()
	if o.RedirectURI == "" {
		o.RedirectURI = "app://rewards?x=1&y=2"
	}
	o.MayPayOut = true
	link, _, err := h.service.Link(t.Context(), h.org, h.site, o)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// get opens a page and returns its status and text.
func (h *home) get(t *testing.T, link string) (int, string) {
	t.Helper()
	return read(t, h.browser.Get, link)
}

// post sends a form and follows to the page after it.
func (h *home) post(t *testing.T, link string, pairs ...string) (int, string) {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return read(t, func(link string) (*http.Response, error) { return h.browser.PostForm(link, form) }, link)
}

func read(t *testing.T, ask func(string) (*http.Response, error), link string) (int, string) {
	t.Helper()
	a, err := ask(link)
	if err != nil {
		t.Fatal(err)
	}

	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", link, name, got, want)
		}
	}

	checkPage(t, link, string(b))

	return a.StatusCode, string(b)
}

// checkPage holds every page to what a phone, a screen reader and paper need.
func checkPage(t *testing.T, link, page string) {
	t.Helper()
	for _, must := range []string{`<html lang="`, `name="viewport"`, "<main>", "<h1>", "<title>"} {
		if !strings.Contains(page, must) {
			t.Errorf("%s: no %s", link, must)
		}
	}

	for _, never := range []string{"<script", "style=", "onclick", "ZgotmplZ"} {
		if strings.Contains(page, never) {
			t.Errorf("%s: has %s", link, never)
		}
	}

	for _, input := range regexp.MustCompile(`<input id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, `<label for="`+input[1]+`"`) {
			t.Errorf("%s: field %s has no label", link, input[1])
		}
	}

	if strings.Count(page, "<input ")-strings.Count(page, `<input type="hidden"`) != len(regexp.MustCompile(`<input id="`).FindAllString(page, -1)) {
		t.Errorf("%s: a field without an id", link)
	}
}

func want(t *testing.T, status int, page string, code int, parts ...string) {
	t.Helper()
	if status != code {
		t.Errorf("status %d, want %d", status, code)
	}
	for _, part := range parts {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
}

func TestPortal_WithdrawWithoutAScript(t *testing.T) {
	h := open(t)
	link := h.link(t, reward.LinkOptions{})
	status, page := h.get(t, link)
	want(t, status, page, 200, "£25.00", "Link a bank account", "Signup bonus", `href="app://rewards?x=1&amp;y=2"`)
	status, page = h.post(t, link+"/withdraw", "amount", "25", "form", "a form")
	want(t, status, page, 422, "There is no bank account to pay to")
	status, page = h.get(t, link+"/account")
	want(t, status, page, 200, "Sort code")
	status, page = h.post(t, link+"/account", "name", `Ann "<b>" Other`, "sort_code", "12-34", "account_number", "1")

	want(t, status, page, 422, `value="Ann &#34;&lt;b&gt;&#34; Other"`, "A sort code has six digits", "An account number has eight digits", `aria-invalid="true"`)
	status, page = h.post(t, link+"/account", "name", "Ann Other", "sort_code", "12-34-56", "account_number", "12345678")
	want(t, status, page, 200, "Your bank account is linked.", "ending in 5678", `value="25.00"`, "nothing is paid to it before 16 January, 12:00")
	form := formOf(t, page)
	status, page = h.post(t, link+"/withdraw", "amount", "10")
	want(t, status, page, 422, "Open the page again")
	for _, amount := range []string{"", "x", "1.234", "-3", "9.99", "25.01", "1,50", "1,0.5", "1 0", "£", "12345678"} {
		status, page = h.post(t, link+"/withdraw", "amount", amount, "form", form)
		want(t, status, page, 422, `role="alert"`, `inputmode="decimal" value="`+amount+`"`)
	}

	status, page = h.post(t, link+"/withdraw", "amount", "£10.5", "form", form)
	want(t, status, page, 200, "Withdrawal requested.", "£14.50", "−£10.50", "waits for approval")
	status, page = h.post(t, link+"/withdraw", "amount", "£10.50", "form", form) // sent twice, it withdraws once
	want(t, status, page, 200, "£14.50")
	status, page = h.post(t, link+"/withdraw", "amount", "£10.51", "form", form)
	want(t, status, page, 422, "This form asked for £10.50 already")
	status, page = h.get(t, link+"/statement")
	want(t, status, page, 200, "1 January 2026 to 15 January 2026", "£25.00", "−£10.50", "Balance after", "Statement number", "?tax_year=2025", "?month=2025-12")
	status, page = h.get(t, link+"/statement?tax_year=2025")
	want(t, status, page, 200, "6 April 2025 to 5 April 2026", "£14.50")

	for path, wanted := range map[string]string{"csv": "\nline,2,", "json": `"withdrawn_pence": -1050`} {
		resp, err := http.Get(link + "/statement." + path + "?month=2026-01")
		if err != nil {
			t.Fatal(err)
		}

		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), wanted) || !strings.Contains(resp.Header.Get("Content-Disposition"), "statement-2026-01-01-2026-01-31."+path) {
			t.Errorf("%s: %d %v %s", path, resp.StatusCode, err, b)
		}
	}

	status, page = h.get(t, link+"/statement?from=2025-12-01&to=2025-12-31")
	want(t, status, page, 200, "Nothing in these days.")
	for _, days := range []string{"?from=yesterday", "?from=2026-02-01&to=2026-01-01", "?from=2000-01-01", "?month=2026-13", "?tax_year=x", "?tax_year=2025&month=2026-01"} {
		status, page = h.get(t, link+"/statement"+days)
		want(t, status, page, 400, `role="alert"`)
	}
}

// formOf returns the name of the page's form of withdrawal.
func formOf(t *testing.T, page string) string {
	t.Helper()
	form := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(page)
	if form == nil {
		t.Fatalf("the page has no form:\n%s", page)
	}
	return form[1]
}

func TestPortal_Code(t *testing.T) {
	h := open(t)
	link := h.link(t, reward.LinkOptions{TwoFactor: true})
	stranger := *http.DefaultClient
	h.client(t)
	status, page := h.get(t, link)
	want(t, status, page, 200, "£25.00", "Send me a code")

	status, page = h.post(t, link+"/account", "name", "Ann", "sort_code", "123456", "account_number", "12345678")
	want(t, status, page, 422, "Enter the code")
	status, page = h.post(t, link+"/code")
	want(t, status, page, 200, "A code is on its way", "The six digits")
	if _, err := h.service.SendMail(t.Context()); err != nil {
		t.Fatal(err)
	}

	status, page = h.post(t, link+"/confirm", "code", "1")
	want(t, status, page, 422, "That is not the code; 4 more tries.")
	code := regexp.MustCompile(`\d{6}`).FindString(h.letter)
	status, page = h.post(t, link+"/confirm", "code", code[:3]+" "+code[3:])
	want(t, status, page, 200, "the code was right", "Link a bank account")

	// Who else has the link has not entered the code.
	status, page = read(t, stranger.Get, link)
	want(t, status, page, 200, "Send another code", "The six digits")
	account := url.Values{"name": {"A Thief"}, "sort_code": {"666666"}, "account_number": {"66666666"}}
	status, page = read(t, func(to string) (*http.Response, error) { return stranger.PostForm(to, account) }, link+"/account")
	want(t, status, page, 422, "Enter the code")
	status, page = read(t, func(to string) (*http.Response, error) { return stranger.PostForm(to, url.Values{"code": {code}}) }, link+"/confirm")
	want(t, status, page, 422, "Your browser keeps no cookies")
	status, page = h.post(t, link+"/account", "name", "Ann", "sort_code", "123456", "account_number", "12345678")
	want(t, status, page, 200, "ending in 5678")
}

func TestPortal_Links(t *testing.T) {
	h := open(t)
	for _, path := range []string{"/balance/x", "/balance/x/account", "/balance/x/statement", "/balance/x/y"} {
		status, page := h.get(t, h.server.URL+path)
		want(t, status, page, 404, "This link is not known, or its time is over.")
	}

	// What no page is for is answered by a page too, whatever the method.
	mine := h.link(t, reward.LinkOptions{})
	for _, c := range []struct {
		method, address string
		status          int
		text            string
	}{
		{"GET", h.server.URL + "/balance/", 404, "This link is not known"},
		{"PUT", h.server.URL + "/balance/x", 404, "This link is not known"},
		{"GET", mine + "/history/2026/1", 404, "There is no such page."},
		{"GET", mine + "/nowhere", 404, "There is no such page."},
		{"DELETE", mine + "/account", 405, "There is no such page."},
		{"POST", mine + "/statement", 405, "Back to your page"},
	} {
		ask, err := http.NewRequest(c.method, c.address, nil)
		if err != nil {
			t.Fatal(err)
		}

		answer, err := h.browser.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		want(t, answer.StatusCode, string(body), c.status, "<h1>That did not work</h1>", c.text)
		if allow := answer.Header.Get("Allow"); (allow != "") != (c.status == 405) {
			t.Errorf("%s %s: Allow %q", c.method, c.address, allow)
		}
	}

	hidden := h.link(t, reward.LinkOptions{HideTransactions: true})
	status, page := h.get(t, hidden)
	want(t, status, page, 200, "£25.00")
	if strings.Contains(page, "Signup") {
		t.Error("transactions are shown that were to be hidden")
	}

	status, page = h.get(t, hidden+"/statement")
	want(t, status, page, 404)
	setup := h.link(t, reward.LinkOptions{Setup: true})
	status, page = h.get(t, setup)
	want(t, status, page, 200, "Sort code")
	h.now = h.now.Add(time.Hour)
	status, page = h.get(t, setup)
	want(t, status, page, 404)
}

func TestPortal_LongForm(t *testing.T) {
	h := open(t)
	link := h.link(t, reward.LinkOptions{})
	status, page := h.post(t, link+"/account", "name", strings.Repeat("a", 10<<10), "sort_code", "123456", "account_number", "12345678")
	if status == 200 {
		t.Errorf("a form of 10 KiB was taken: %s", page)
	}
}

// TestPortal_AnyText: a form or an address with text that no database keeps as it is is refused, on either engine.
func TestPortal_AnyText(t *testing.T) {
	h := open(t)
	link := h.link(t, reward.LinkOptions{})
	for _, text := range []string{"\xff", "a\x00b"} {
		status, page := h.post(t, link+"/account", "name", text, "sort_code", "123456", "account_number", "12345678")
		want(t, status, page, 400, "UTF-8")
		status, page = h.post(t, link+"/wish", "asset", text)
		want(t, status, page, 400, "UTF-8")
		status, page = h.get(t, link+"?done="+url.QueryEscape(text))
		want(t, status, page, 400, "UTF-8")
	}
}

// An address that asks too often gets 429, and its link is not looked up.
func TestPortal_Rate(t *testing.T) {
	h := open(t)
	link := h.link(t, reward.LinkOptions{})
	s := &portal.Server{
		Reward: h.service,
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		Admit: func(http.Header, flex.OrgID, string) error {
			return flex.Fail(flex.TooMany, "too many requests")
		},
	}

	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, link, http.NoBody))
	if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "busy") {
		t.Errorf("beyond the rate: %d %s", w.Code, w.Body)
	}
}

func TestPortal_Style(t *testing.T) {
	h := open(t)
	a, err := http.Get(h.server.URL + "/balance/style.css")
	if err != nil || a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("%v %v", a, err)
	}
}

// refuse fails if the page has what it must not.
func refuse(t *testing.T, page string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(page, part) {
			t.Errorf("the page has %q:\n%s", part, page)
		}
	}
}
