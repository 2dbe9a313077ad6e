package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// many registers chargers beside those there are, so that there are so many.
func (d *service) many(site flex.SiteID, from, to int) {
	d.Helper()
	d.Rows("asset", []string{"id", "org_id", "site_id", "external_id", "type", "created_at"}, to-from, func(i int) []any {
		return []any{fmt.Appendf(nil, "%016d", from+i), d.Org.Bytes(), site.Bytes(), fmt.Sprint(from + i), "charger", 0}
	})
}

// parts is a writer that counts the rows of each part: a part begins with a new deadline.
type parts struct {
	*httptest.ResponseRecorder
	rows []int
	cut  func() // called when the second part begins, if set
}

func (p *parts) SetWriteDeadline(time.Time) error {
	p.rows = append(p.rows, 0)
	if len(p.rows) == 2 && p.cut != nil {
		p.cut()
	}
	return nil
}

func (p *parts) Write(b []byte) (int, error) {
	if len(p.rows) > 0 {
		ends := "\n"
		if p.Header().Get("Content-Type") == "application/json" {
			ends = `"type":"charger"`
		}
		p.rows[len(p.rows)-1] += strings.Count(string(b), ends)
	}
	return p.ResponseRecorder.Write(b)
}

// TestExport_Whole downloads lists that end at, before and after the edges of the parts in
// which they are read. Each row comes once, and never more than a part is in memory.
func TestExport_Whole(t *testing.T) {
	d := newConsole(t, "2026-01-13T12:00:00Z")
	d.login()
	site, n := d.Site(), 0

	for _, want := range []int{0, 1, 4999, 5000, 5001, 10_000, 10_001} {
		d.many(site, n, want)
		n = want
		for _, format := range []string{"csv", "json"} {
			r := httptest.NewRequestWithContext(d.Context(), "GET", "http://localhost:8080/console/assets."+format, nil)
			r.AddCookie(d.cookie)
			w := &parts{ResponseRecorder: httptest.NewRecorder()}
			d.handler.ServeHTTP(w, r)

			found := map[string]bool{}
			if format == "csv" {
				for _, line := range strings.Split(strings.TrimSpace(w.Body.String()), "\n")[1:] {
					found[strings.Split(line, ",")[0]] = true
				}
			} else {
				var rows []map[string]any
				if err := json.Unmarshal(w.Body.Bytes(), &rows); err != nil || rows == nil {
					t.Fatal(err)
				}

				for _, row := range rows {
					found[row["asset_id"].(string)] = true
				}
			}

			sum := 0
			if format == "csv" {
				w.rows[0]-- // the header line
			}

			for _, rows := range w.rows {
				sum += rows
				if rows > 5000 {
					t.Errorf("%s of %d: a part of %d rows", format, n, rows)
				}
			}
			if w.Code != 200 || len(found) != n || sum != n {
				t.Errorf("%s: %d, %d rows, %d of them different, of %d", format, w.Code, sum, len(found), n)
			}
		}
	}

	if lines := strings.Count(d.page("/console/assets.csv?limit=6000"), "\n"); lines != 6001 {
		t.Errorf("%d lines of a part of 6000", lines)
	}

	// A charger that sent a reading of a time without a car owes all that are over.
	var rs []flex.Reading
	for i := range n {
		rs = append(rs, flex.Reading{AssetID: flex.AssetID(fmt.Appendf(nil, "%016d", i)), Span: flex.PeriodAt(d.db.Now()).Add(-20).Span(), Label: flex.ChargerEnergy})
	}
	if err := d.db.Write(d.Context(), d.Org, func(tx *store.Tx) error { return tx.PutReadings(d.Context(), rs) }); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(d.page("/console/readings.csv?days=1"), "\n"); lines != 1+n {
		t.Errorf("%d lines of what is missing of %d assets", lines, n)
	}

	for _, path := range []string{"assets.csv", "assets.json", "assets.csv?sort=asset", "assets.json?sort=-power"} {
		d.cutOff("/console/" + path)
	}
}

// TestExport_Sorted downloads a list of three parts in a chosen order. Meanwhile an asset of
// the last part is renamed so that it would come first, and another one is deleted.
func TestExport_Sorted(t *testing.T) {
	each(t, "2026-01-13T12:00:00Z", func(d *service) {
		d.login()
		d.many(d.Site(), 10_000, 21_001)
		r := httptest.NewRequestWithContext(d.Context(), "GET", "http://localhost:8080/console/assets.csv?sort=-asset", nil)
		r.AddCookie(d.cookie)
		w := &parts{ResponseRecorder: httptest.NewRecorder()}
		w.cut = func() {
			d.Exec(`UPDATE asset SET external_id = 'z' WHERE external_id = '10000'`)
			d.Exec(`DELETE FROM asset WHERE external_id = '10500'`)
		}
		d.handler.ServeHTTP(w, r)

		lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")[1:]
		if len(lines) != 11_000 || len(w.rows) != 3 || slices.Max(w.rows) > 5001 {
			d.Fatalf("%d rows in parts of %d", len(lines), w.rows)
		}

		for i, line := range lines {
			want := 21_000 - i
			if want <= 10_500 {
				want-- // the deleted one is left out
			}
			name := strings.Split(line, ",")[1]
			if name != fmt.Sprint(want) && (name != "z" || want != 10_000) {
				d.Fatalf("row %d is %s, not %d", i, name, want)
			}
		}
	})
}

// cutOff breaks a download off after its first part: its client must see that.
func (d *service) cutOff(path string) {
	d.Helper()
	d.server.Log = slog.New(slog.DiscardHandler)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		p := &parts{ResponseRecorder: httptest.NewRecorder(), cut: cancel}
		defer func() {
			w.Write(p.Body.Bytes())
			http.NewResponseController(w).Flush()
			if e := recover(); e != nil {
				panic(e)
			}
		}()

		d.handler.ServeHTTP(p, r.WithContext(ctx))
	}))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)

	r, err := http.NewRequestWithContext(d.Context(), "GET", server.URL+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	r.AddCookie(d.cookie)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		d.Fatal(err)
	}

	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err == nil || len(text) == 0 || json.Valid(text) {
		d.Errorf("%s: the client took %d bytes for the whole: %v", path, len(text), err)
	}
}

// TestExport_Unknown asks for filters that there are not.
func TestExport_Unknown(t *testing.T) {
	d := newConsole(t, "2026-01-13T12:00:00Z")
	d.login()

	for _, path := range []string{"assets.csv?colour=Zappi", "deliveries.json?orgs=x", "audit.csv?when=now", "readings/held.json?site=x",
		"assets?colour=Zappi", "deliveries?orgs=x", "audit?when=now", "readings/held?site=x", "instructions?state=running", "settlement?state=paid",
		"assets?type=toaster", "assets.csv?state=broken", "deliveries?state=broken", "settlement?status=broken", "readings/held?state=broken", "readings?state=x", "readings.csv?limit=5", "offers?state=x",
		"assets.csv?limit=0", "deliveries.csv?limit=all", "audit.csv?limit=-1", "assets.json?limit=100001", "deliveries?late=maybe"} {
		if a := d.get("/console/" + path); a.status != 422 {
			t.Errorf("%s: %d %.200s", path, a.status, a.body)
		}
	}
}

// TestSettlement_OneInstant: more events begin at one instant than a page lists. The pages
// have each once.
func TestSettlement_OneInstant(t *testing.T) {
	each(t, "2026-01-13T12:00:00Z", func(d *service) {
		d.login()
		site := d.Site()
		const n = 2*50 + 7
		start := at("2026-01-13T02:00:00Z")
		d.many(site, 0, n)
		d.Rows("flex_event", []string{"id", "org_id", "site_id", "asset_id", "day", "first", "last", "from_at", "to_at", "meant", "nominated", "detected_at", "estimated"}, n, func(i int) []any {
			return []any{fmt.Appendf(nil, "%016d", i), d.Org.Bytes(), site.Bytes(), fmt.Appendf(nil, "%016d", i), "2026-01-13", 5, 5,
				start.UnixMicro(), start.Add(time.Hour / 2).UnixMicro(), "1", "1", 0, 0}
		})

		found := map[string]bool{}
		for path := "/console/settlement"; path != ""; {
			a := d.do("GET", path, nil, func(r *http.Request) { r.Header.Set("Accept", "application/json") })
			var page struct {
				Rows []map[string]any
				Next string
			}
			if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 {
				t.Fatalf("%s: %d %v %s", path, a.status, err, a.body)
			}

			for _, row := range page.Rows {
				found[row["flex_event_id"].(string)] = true
			}
			path = page.Next
		}
		if len(found) != n {
			t.Errorf("the pages have %d events of %d", len(found), n)
		}
		if lines := strings.Count(d.page("/console/settlement.csv"), "\n"); lines != n+1 {
			t.Errorf("%d lines", lines)
		}
	})
}
