package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestProducts imports products after a preview, finds them by service and state, and
// withdraws one.
func TestProducts(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.wants(d.page("/console/products"), "There is no such product.", "Import")
		d.wants(d.page("/console/instructions"), `href="/console/products?org=`)
		for _, bad := range []string{"?service=x", "?state=x", "?x=1"} {
			if a := d.do("GET", "/console/products"+bad, nil); a.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d", bad, a.status)
			}
		}

		from := at(sceneNow).Add(26 * time.Hour).Truncate(time.Hour)
		row := func(reference, service string) string {
			return strings.Join([]string{reference, service, from.Format(time.RFC3339), from.Add(time.Hour).Format(time.RFC3339), "50", "250"}, ",") + "\n"
		}

		form := url.Values{"org": {s.Org.String()}, "csv": {"reference,service,start_timestamp,end_timestamp,volume_kw,price_gbp_per_mwh\n" + row("DFS-1", "dfs") + row("DNO-1", "dno")}}
		d.wants(d.do("POST", "/console/products/preview", form).body, "2 products", "Nothing was kept yet", "DFS-1", "DNO-1", "<td>new</td>")
		d.wants(d.page("/console/products"), "There is no such product.")
		wrong := url.Values{"org": form["org"], "csv": {"reference,service\nDFS-1,dfs\n"}}
		refused := d.do("POST", "/console/products/preview", wrong)
		d.wants(refused.body, "Not possible", `role="alert"`, "reference,service DFS-1,dfs")
		if refused.status < 400 {
			t.Errorf("a wrong list: %d", refused.status)
		}

		form.Set("typed", "perhaps")
		a := d.do("POST", "/console/products/import", form)
		d.wants(a.body, "Not possible", "DFS-1,dfs")
		if a.status != http.StatusBadRequest {
			t.Errorf("without the word: %d", a.status)
		}
		form.Set("typed", "invite")
		d.wants(d.post("/console/products/import", form), "2 products", "households are invited", "DFS-1", "DNO-1", "−50 kW")
		list := d.page("/console/products?service=dfs&state=open")
		d.wants(list, "1 product", "DFS-1")
		d.wants(d.page("/console/products.csv"), "id,reference,state,service", "DNO-1,open,dno")

		_, rest, _ := strings.Cut(list, `<th scope="row"><a href="`)
		link, _, _ := strings.Cut(rest, `"`)
		d.wants(d.page(link), "DFS-1", "Take part", "Withdraw the product")
		d.wants(d.do("GET", link, nil, asJSON).body, `"reference":"DFS-1"`)
		d.wants(d.post(link+"/withdraw", url.Values{"typed": {"withdraw"}}), "withdrawn", "Nothing is asked for by it any more")
		d.wants(d.page("/console/products?state=withdrawn"), "1 product", "DFS-1")
	})
}
