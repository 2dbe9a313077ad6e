package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestProducts imports products as a list and as CSV, lists, answers and withdraws them, and refuses what cannot be.
func TestProducts(t *testing.T) {
	h := settleIn(t)
	there := h.place()
	from := flex.PeriodAt(time.Now().Add(30 * time.Hour)).Start()
	to := from.Add(time.Hour)
	product := func(reference, more string) string {
		return fmt.Sprintf(`{"reference":%q,"service":"dno","start_timestamp":%q,"end_timestamp":%q,"volume_kw":500,"price_gbp_per_mwh":300%s}`,
			reference, from.Format(time.RFC3339), to.Format(time.RFC3339), more)
	}

	list := func(ps ...string) string { return `{"products":[` + strings.Join(ps, ",") + `]}` }
	const head = "reference,service,start_timestamp,end_timestamp,volume_kw,price_gbp_per_mwh,availability_gbp_per_mw_per_hour,baseline,participation,direction\n"
	row := func(reference, more string) string {
		return fmt.Sprintf("%s,dfs,%s,%s,100,250,%s\n", reference, from.Format(time.RFC3339), to.Format(time.RFC3339), more)
	}
	asCSV := func(rows string) string { return fmt.Sprintf(`{"csv":%q}`, head+rows) }

	h.want("POST", "/grid/products?dry_run=true", list(product("A", "")), 200, "")
	if r := h.want("GET", "/grid/products?service=dno", "", 200, ""); !strings.Contains(r.body, `"num_total":0`) {
		t.Errorf("a dry run keeps %s", r.body)
	}
	r := h.want("POST", "/grid/products", list(product("A", ""), product("B", `,"participation":"opt_out","baseline":"nominated","direction":"up","availability_gbp_per_mw_per_hour":5`)), 200, "")
	a, b := text(t, r.body, "products", 0, "id"), text(t, r.body, "products", 1, "id")
	if r := h.want("POST", "/grid/products", list(product("A", "")), 200, ""); !strings.Contains(r.body, `"act":"unchanged"`) {
		t.Errorf("the same again: %s", r.body)
	}

	r = h.want("POST", "/grid/products", asCSV(row("C", "7,mean,opt_in,down")+row("D", ",,,")), 200, "")
	if strings.Count(r.body, `"act":"new"`) != 2 {
		t.Errorf("as CSV: %s", r.body)
	}
	if r := h.want("GET", "/grid/products?limit=2&state=open", "", 200, ""); !strings.Contains(r.body, `"num_total":5`) || !strings.Contains(r.body, `"next"`) {
		t.Errorf("a page: %s", r.body) // with the one that the place has
	}

	for body, status := range map[string]int{
		`{}`:                                      400,
		list(product("E", `,"group":"nowhere"`)):  404,
		list(product("E", ""), product("E", "")):  400,
		list(product("E", `,"baseline":"guess"`)): 422,
		list(strings.Replace(product("E", ""), `"volume_kw":500`, `"volume_kw":0`, 1)):                 422,
		list(strings.Replace(product("E", ""), to.Format(time.RFC3339), from.Format(time.RFC3339), 1)): 400,
		list(product("E", fmt.Sprintf(`,"answer_by":%q`, to.Format(time.RFC3339)))):                    400,
		`{"csv":"x","products":[` + product("E", "") + `]}`:                                            400,
		asCSV(row("E", ",guess,,")):    400,
		asCSV(row("E", ",,perhaps,")):  400,
		asCSV(row("E", ",,,sideways")): 400,
		asCSV(row("E", "x,,,")):        400,
	} {
		h.want("POST", "/grid/products", body, status, "")
	}
	h.want("POST", "/grid/products", strings.Repeat(" ", 2<<20+1), 413, "", "Content-Type: application/json")
	h.want("GET", "/grid/products?limit=0", "", 422, "")
	h.want("GET", "/grid/products?state=perhaps", "", 422, "")
	h.want("GET", "/grid/products/no-id", "", 422, "")

	site := "/entities/site/" + there["SITE"] + "/products"
	if r := h.want("GET", site, "", 200, ""); strings.Count(r.body, `"takes_part":true`) != 1 {
		t.Errorf("invited to %s", r.body)
	}

	h.want("PUT", site+"/"+a, `{"takes_part":true}`, 200, "")
	h.want("PUT", site+"/"+a, `{}`, 422, "")
	h.want("PUT", "/entities/site/"+there["BARE"]+"/products/"+a, `{"takes_part":true}`, 404, "")
	if r := h.want("GET", "/grid/products/"+a, "", 200, ""); !strings.Contains(r.body, `"num_take_part":1`) || !strings.Contains(r.body, `"answered_by":"credential `) {
		t.Errorf("answered: %s", r.body)
	}
	h.want("POST", "/grid/products/"+b+"/withdraw", `{"reason":"cancelled"}`, 200, "")
	h.want("POST", "/grid/products/"+b+"/withdraw", `{"reason":"cancelled"}`, 200, "")
	h.want("PUT", site+"/"+b, `{"takes_part":false}`, 409, "")
	h.want("POST", "/grid/products", list(product("B", "")), 409, "")

	h.want("PUT", "/endpoints/invitation", fmt.Sprintf(`{"url":%q}`, h.receiver), 200, "")
	h.want("POST", "/endpoints/invitation/test", "", 200, "")
	if err := h.whole.RunUntilIdle(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if r := h.want("GET", "/deliveries?kind=invitation", "", 200, ""); !strings.Contains(r.body, `"kind":"invitation"`) {
		t.Errorf("pushed: %s", r.body)
	}
}
