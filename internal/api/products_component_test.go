package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestProducts_Component: a household accepts and refuses with its own component token, for its own site alone. It sees
// no price for being available, no answer of others and none of the products of the organisation.
func TestProducts_Component(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site, own := h.component("user-1")
		other, theirs := h.component("user-2")
		for _, home := range []string{site, other} {
			h.newAsset(home, "of "+home)
			h.controls(db, home)
		}

		from := flex.PeriodAt(time.Now().Add(30 * time.Hour)).Start()
		r := h.want("POST", "/grid/products", fmt.Sprintf(`{"products":[{"reference":"DFS-1","service":"dfs","start_timestamp":%q,"end_timestamp":%q,
			"volume_kw":5,"price_gbp_per_mwh":300,"availability_gbp_per_mw_per_hour":70}]}`, from.Format(time.RFC3339), from.Add(time.Hour).Format(time.RFC3339)), 200, "")
		id := text(t, r.body, "products", 0, "id")
		mine, others := "/entities/site/"+site+"/products", "/entities/site/"+other+"/products"

		r = h.want("GET", mine, "", 200, "", own)
		if got := text(t, r.body, "products", 0, "id"); got != id || strings.Contains(r.body, "availability") {
			t.Errorf("invited to %s", r.body)
		}
		for _, takesPart := range []string{"true", "false", "true"} {
			r = h.want("PUT", mine+"/"+id, `{"takes_part":`+takesPart+`}`, 200, "", own)
			if got := text(t, r.body, "takes_part"); got != takesPart {
				t.Errorf("answered %s: %s", takesPart, r.body)
			}
		}

		h.want("GET", others, "", 404, "", own)
		h.want("PUT", others+"/"+id, `{"takes_part":true}`, 404, "", own)
		h.want("GET", "/grid/products", "", 403, "", own)
		h.want("GET", "/grid/products/"+id, "", 403, "", own)
		h.want("POST", "/grid/products/"+id+"/withdraw", `{"reason":"x"}`, 403, "", own)

		r = h.want("GET", others, "", 200, "", theirs)
		if got := text(t, r.body, "products", 0, "takes_part"); got != "false" {
			t.Errorf("another household: %s", r.body)
		}
		r = h.want("GET", "/grid/products/"+id, "", 200, "")
		if got := text(t, r.body, "product", "num_take_part"); got != "1" || !strings.Contains(r.body, `"answered_by":"household"`) {
			t.Errorf("the organisation sees %s", r.body)
		}
	})
}

// controls has a site consent to be given schedules.
func (h *fixture) controls(db *store.DB, site string) {
	h.Helper()
	var id flex.SiteID
	err := id.UnmarshalText([]byte(site))
	if err != nil {
		h.Fatal(err)
	}
	err = db.Write(h.Context(), h.org.ID, func(tx *store.Tx) error {
		return tx.AddMethod(h.Context(), id, flex.FullScheduleMethod)
	})
	if err != nil {
		h.Fatal(err)
	}
}
