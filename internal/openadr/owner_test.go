package openadr_test

import (
	"fmt"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestRoles_AnotherClient: a VEN that gets another client takes its resources along. The former client reads nothing of them, nor by
// their targets; the new one reads and writes them.
func TestRoles_AnotherClient(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		was, is := f.client(f.org, "was", flex.OpenADRNode), f.client(f.org, "is", flex.OpenADRNode)
		const venOf = `{"objectType":"BL_VEN_REQUEST","clientID":%q,"venName":"home 7"}`
		ven := f.want(201, f.bl, "POST", "/vens", fmt.Sprintf(venOf, "was")).field("id")
		resource := f.want(201, f.bl, "POST", "/resources", fmt.Sprintf(
			`{"objectType":"BL_RESOURCE_REQUEST","clientID":"was","resourceName":"charger","venID":%q,"targets":["east"]}`, ven)).field("id")
		program := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "a", `null`)).field("id")
		event := f.want(201, f.bl, "POST", "/events", fmt.Sprintf(anEvent, program, `["east"]`)).field("id")

		reads := func(step, token string, status int) {
			t.Helper()
			for _, path := range []string{"/vens/" + ven, "/resources/" + resource, "/events/" + event} {
				if r := f.ask(token, "GET", path, ""); r.status != status {
					t.Errorf("%s: %s: %d %s, want %d", step, path, r.status, r.body, status)
				}
			}
		}
		reads("the first", was, 200)
		reads("not yet", is, 404)

		f.want(200, f.bl, "PUT", "/vens/"+ven, fmt.Sprintf(venOf, "is"))
		reads("the former", was, 404)
		reads("the new one", is, 200)
		r := f.want(200, is, "PUT", "/resources/"+resource, fmt.Sprintf(`{"objectType":"VEN_RESOURCE_REQUEST","resourceName":"charger","venID":%q}`, ven))
		if r.field("clientID") != "is" || fmt.Sprint(r.object()["targets"]) != "[east]" {
			t.Errorf("the resource is %s", r.body)
		}
		f.want(200, is, "DELETE", "/resources/"+resource, "")
		f.want(200, is, "DELETE", "/vens/"+ven, "")
	})
}
