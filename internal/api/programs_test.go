package api_test

import (
	"strings"
	"testing"

	"flexd/internal/store"
)

// TestPrograms binds an OpenADR program, changes and ends that, each shown before it is done and kept in the audit
// log; a second program stays as it is, and what cannot be is refused.
func TestPrograms(t *testing.T) {
	h := settleIn(t)
	one, other := h.program("one").String(), h.program("another").String()
	binding := "/grid/programs/" + one + "/binding"
	count := func(body, of string) int { return len(get(t, body, of).([]any)) }

	const simple, double = `{"service":"dno","simple_kw":[-100]}`, `{"service":"dno","simple_kw":[-200],"price_gbp_per_mwh":300}`
	for _, query := range []string{"?dry_run=true", ""} {
		r := h.want("PUT", binding+query, simple, 200, "")
		if count(r.body, "asked") != 1 || count(r.body, "withdrawn") != 0 || !strings.Contains(r.body, `"change_kw":-100`) {
			t.Errorf("bound %s: %s", query, r.body)
		}

		bound := strings.Contains(h.want("GET", "/grid/programs", "", 200, "").body, `"binding"`)
		if bound != (query == "") {
			t.Errorf("bound %s: %t", query, bound)
		}
	}

	r := h.want("PUT", binding, simple, 200, "")
	if count(r.body, "asked") != 0 || !strings.Contains(r.body, `"num_stays":1`) {
		t.Errorf("the same again: %s", r.body)
	}
	r = h.want("PUT", binding+"?dry_run=true", double, 200, "")
	if count(r.body, "asked") != 1 || count(r.body, "withdrawn") != 1 {
		t.Errorf("another change: %s", r.body)
	}
	r = h.want("GET", "/grid/programs", "", 200, "")
	if strings.Count(r.body, `"binding"`) != 1 || !strings.Contains(r.body, `"simple_kw":[-100]`) || !strings.Contains(r.body, other) {
		t.Errorf("a preview is kept: %s", r.body)
	}

	h.want("PUT", binding, `{"kind":"limit"}`, 400, "")
	h.want("PUT", binding, `{"group":"nowhere"}`, 404, "")
	h.want("PUT", binding, `{"gsp_group":"_Q"}`, 400, "")
	h.want("PUT", binding, `{"kind":"perhaps"}`, 422, "")
	h.want("DELETE", "/grid/programs/"+other+"/binding", "", 404, "")
	h.want("DELETE", "/grid/programs/no-id/binding", "", 422, "")

	for _, query := range []string{"?dry_run=true", ""} {
		r := h.want("DELETE", binding+query, "", 200, "")
		if count(r.body, "withdrawn") != 1 {
			t.Errorf("unbound %s: %s", query, r.body)
		}
	}
	h.want("DELETE", binding, "", 404, "")

	acts, details := map[string]int{}, map[string]int{}
	err := h.whole.DB.ReadAll(t.Context(), func(all *store.All) error {
		noted, err := all.Acts(t.Context(), store.ActFilter{Limit: 100})
		for _, a := range noted {
			acts[a.Act]++
			details[a.Detail]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if acts["bind openadr program"] != 5 || acts["unbind openadr program"] != 3 { // those that were refused, too
		t.Errorf("the audit log has %v", acts)
	}
	if details["instruction for the whole fleet, service dno, kW at levels -100"] != 2 {
		t.Errorf("the audit log has the details %v", details)
	}
}
