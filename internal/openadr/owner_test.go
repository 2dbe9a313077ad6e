package openadr_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestRoles_AnotherClient: a VEN that gets another client takes its resources along. The
// former client reads nothing of them, nor by their targets; the new one reads and writes
// them.
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

// TestNotices_MovedBounds: a VEN with several large resources gets another client. All of them
// move, and their subscribers are sent no more together than of any other change.
func TestNotices_MovedBounds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		f.client(f.org, "was", flex.OpenADRNode)
		is := f.client(f.org, "is", flex.OpenADRNode)
		names := make([]string, adr.TargetsMax)
		for i := range names {
			names[i] = fmt.Sprintf("%0128d", i)
		}
		targets, err := json.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}

		const venOf = `{"objectType":"BL_VEN_REQUEST","clientID":%q,"venName":"home 7"}`
		ven := f.want(201, f.bl, "POST", "/vens", fmt.Sprintf(venOf, "was")).field("id")
		resources := make([]string, 3)
		for i := range resources {
			resources[i] = f.want(201, f.bl, "POST", "/resources", fmt.Sprintf(
				`{"objectType":"BL_RESOURCE_REQUEST","clientID":"was","resourceName":"r%d","venID":%q,"targets":%s}`, i, ven, targets)).field("id")
		}

		// Each resource alone is within the bound, or just beyond it.
		const each, bytes = 24, 128 * adr.TargetsMax
		one := `{"objects":["RESOURCE"],"operations":["UPDATE"],"callbackUrl":"https://example.com/notices"}`
		for range adr.NoticesMax/(each*bytes)/2 + 1 {
			f.want(201, f.bl, "POST", "/subscriptions", fmt.Sprintf(
				`{"clientName":"c","objectOperations":[%s]}`, strings.Join(slices.Repeat([]string{one}, each), ",")))
		}

		f.want(200, f.bl, "PUT", "/vens/"+ven, fmt.Sprintf(venOf, "is"))
		for _, id := range resources {
			f.want(200, is, "GET", "/resources/"+id, "")
		}

		err = db.Read(t.Context(), f.org.ID, func(tx *store.Tx) error {
			queued, err := tx.ADRNotices(t.Context(), 10_000)
			if most := adr.NoticesMax/bytes + each; len(queued) == 0 || len(queued) > most {
				t.Errorf("%d notices are queued, of at most %d", len(queued), most)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
