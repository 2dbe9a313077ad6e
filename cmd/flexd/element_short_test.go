package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"flexd/internal/portal"
	"flexd/test/browser"
)

// The element says how much a car will lack that is not to be charged at all, such as before
// its tariff's cheap hours.
func TestElement_NothingPossible(t *testing.T) {
	browser := browser.Tab(t)
	pages := map[string]string{
		"/entities/site/s/live": `{"as_of": "2026-01-15T18:00:00Z", "assets": [{"asset_id": "a", "type": "charger", "external_id": "charger-1",
			"plugged_in": true, "generation": 1, "ready_by": "2026-01-15T20:00:00Z"}]}`,
		"/entities/asset/a/schedule/explanation": `{"plan": {"energy_kwh": 0, "shortfall_kwh": 12, "cost_pence": 0}, "periods": []}`,
	}

	balance := &portal.Server{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/balance/") {
			balance.Handler().ServeHTTP(w, r)
			return
		}

		if text, known := pages[r.URL.Path]; known {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, text)
			return
		}

		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, `<!doctype html><html lang="en"><head><title>Mine</title><script type="module" src="/balance/element.js"></script></head>
			<body><flexd-household site="s" token="t" lang="en"></flexd-household></body></html>`)
	}))
	defer service.Close()

	if err := chromedp.Do(browser, chromedp.Navigate(service.URL)); err != nil {
		t.Fatal(err)
	}

	text := shownUntil(t, browser, "It does not charge any more")
	if want := "Of what was asked for, 12 kWh will be missing by 20:00."; !strings.Contains(text, want) {
		t.Errorf("%q lacks %q", text, want)
	}
}
