package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

// In each order, pages and file have each push once, tried or not. That is so even if many
// pushes are equal in what they are sorted by, and across organisations.
func TestDeliveries_Order(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		fen, err := d.db.AddOrg(t.Context(), "Fen Power")
		if err != nil {
			t.Fatal(err)
		}

		now := d.db.Now()
		for n := range 130 {
			id := flex.MakeID[struct{}](now.Add(-time.Duration(n)*time.Minute), [10]byte{byte(n)})
			at := now.Add(-time.Duration(n)*time.Minute + time.Duration(n%7)*time.Second).UnixMicro()
			org := d.Org
			if n%5 == 0 {
				org = fen.ID
			}
			d.Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)
				VALUES ($1, $2, 'schedule', 'schedule', $3, 1, $4, 'rejected', $5, $6, $7, 404, '', '')`,
				org.Bytes(), id.Bytes(), s.assets[0].Bytes(), at, 1+n%3, at, 1000*(n%4))
		}

		all := d.assetPages("/console/deliveries")
		waiting := 0
		for _, row := range all {
			if row["tries"].(float64) == 0 {
				waiting++
			}
		}
		if len(all) < 130+waiting || waiting < 2 {
			t.Fatalf("%d pushes, %d of them not tried", len(all), waiting)
		}

		d.wants(d.page("/console/deliveries?sort=-took"), ">Last tried</th>", ">Took</th>", `<td class="num">3 ms</td>`)

		columns := map[string]string{"queued": "queued_at", "attempts": "tries", "answered": "last_at", "took": "last_took_ms", "status": "last_status"}
		for by, column := range columns {
			for _, sort := range []string{by, "-" + by} {
				rows := d.assetPages("/console/deliveries?sort=" + sort)
				ids := map[any]bool{}

				for i, row := range rows {
					ids[row["event_id"]] = true
					if i == 0 {
						continue
					}
					if a, b := sortKey(rows[i-1][column]), sortKey(row[column]); a != b && a < b != (sort == by) {
						t.Errorf("%s: %q before %q", sort, a, b)
					}
				}
				if len(rows) != len(all) || len(ids) != len(all) {
					t.Errorf("%s: %d rows of %d pushes, there are %d", sort, len(rows), len(ids), len(all))
				}

				lines := strings.Split(strings.TrimSpace(d.page("/console/deliveries.csv?sort="+sort)), "\n")[1:]
				if len(lines) != len(rows) {
					t.Fatalf("%s: the file has %d rows of %d", sort, len(lines), len(rows))
				}
				for i, line := range lines {
					if !strings.HasPrefix(line, rows[i]["event_id"].(string)) {
						t.Fatalf("%s: row %d of the file is %s, the page's is %s", sort, i+1, line, rows[i]["event_id"])
					}
				}
			}
		}

		for query, says := range map[string]string{
			"sort=colour": "is not sorted by", "sort=took&before=" + all[0]["event_id"].(string) + ":many": "is no number",
		} {
			if a := d.do("GET", "/console/deliveries?"+query, nil); a.status != 422 || !strings.Contains(a.body, says) {
				t.Errorf("%s: %d", query, a.status)
			}
		}
	})
}

// sortKey is a value of a JSON row as text that sorts as the value does.
func sortKey(v any) string {
	switch v := v.(type) {
	case float64:
		return fmt.Sprintf("%012.3f", v)
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.UTC().Format("2006-01-02T15:04:05.000000")
		}
		return v
	}
	return ""
}
