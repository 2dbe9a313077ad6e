package openadr_test

import (
	"fmt"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestNotices_AddressChanged: what waits to be sent to an address that a subscription no
// longer has goes to the one in its place, with that one's token, and is given up where there
// is none.
func TestNotices_AddressChanged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		h := newHook(t)
		const one = `{"objects":["PROGRAM"],"operations":["CREATE"],"callbackUrl":%q,"bearerToken":%q}`
		before := fmt.Sprintf(`{"clientName":"c","objectOperations":[`+one+`,`+one+`,`+one+`]}`,
			h.URL+"/moves", "t1", h.URL+"/stays", "t2", h.URL+"/goes", "t3")
		after := fmt.Sprintf(`{"clientName":"c","objectOperations":[`+one+`,`+one+`]}`, h.URL+"/new", "t4", h.URL+"/stays", "t5")

		sub := f.want(201, f.bl, "POST", "/subscriptions", before).field("id")
		f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "p", `null`))
		f.want(200, f.bl, "PUT", "/subscriptions/"+sub, after)
		if _, err := f.server.ADR.SendNotices(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.received(t, "moved", "/new Bearer t4: CREATE PROGRAM", "/stays Bearer t5: CREATE PROGRAM")

		err := db.Read(t.Context(), f.org.ID, func(tx *store.Tx) error {
			sent, err := tx.ADRNotices(t.Context(), 10)
			lost := map[string]string{}
			for _, n := range sent {
				lost[n.URL] = n.Error
			}

			if len(lost) != 3 || lost[h.URL+"/goes"] == "" || lost[h.URL+"/new"] != "" {
				t.Errorf("%+v", sent)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestNotices_TargetTaken: a VEN that may no longer read an event or a program, as that has
// other targets now, is notified once that it is deleted; who still may, that it changed.
func TestNotices_TargetTaken(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		h := newHook(t)
		const sub = `{"clientName":"c","objectOperations":[{"objects":["EVENT","PROGRAM"],"operations":["UPDATE","DELETE"],"callbackUrl":%q}]}`
		for name, targets := range map[string]string{"one": `["east"]`, "two": `["east","west"]`} {
			token := f.client(f.org, name, flex.OpenADRNode)
			f.want(201, f.bl, "POST", "/vens", fmt.Sprintf(`{"objectType":"BL_VEN_REQUEST","clientID":%q,"venName":%q,"targets":%s}`, name, name, targets))
			f.want(201, token, "POST", "/subscriptions", fmt.Sprintf(sub, h.URL+"/"+name))
		}

		other := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "other", `["west"]`)).field("id")
		program := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "a", `["east"]`)).field("id")
		event := f.want(201, f.bl, "POST", "/events", fmt.Sprintf(anEvent, program, `["east"]`)).field("id")
		for _, c := range []struct {
			step, path, body string
			want             []string
		}{
			{"the same targets", "/events/" + event, fmt.Sprintf(anEvent, program, `["east"]`), []string{"/one : UPDATE EVENT", "/two : UPDATE EVENT"}},
			{"other targets", "/events/" + event, fmt.Sprintf(anEvent, program, `["west"]`), []string{"/one : DELETE EVENT", "/two : UPDATE EVENT"}},
			{"other targets still", "/events/" + event, fmt.Sprintf(anEvent, program, `["west"]`), []string{"/two : UPDATE EVENT"}},
			{"back", "/events/" + event, fmt.Sprintf(anEvent, program, `["east"]`), []string{"/one : UPDATE EVENT", "/two : UPDATE EVENT"}},
			{"another program", "/events/" + event, fmt.Sprintf(anEvent, other, `["east"]`), []string{"/one : DELETE EVENT", "/two : UPDATE EVENT"}},
			{"a program", "/programs/" + program, fmt.Sprintf(aProgram, "a", `["west"]`), []string{"/one : DELETE PROGRAM", "/two : UPDATE PROGRAM"}},
		} {
			f.want(200, f.bl, "PUT", c.path, c.body)
			if _, err := f.server.ADR.SendNotices(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.received(t, c.step, c.want...)
		}
	})
}

// TestNotices_OwnTargetTaken: a VEN whose own targets, or its resource's, are taken is
// notified that what it may no longer read is deleted, and of nothing that it may still read.
func TestNotices_OwnTargetTaken(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		h := newHook(t)
		const (
			sub      = `{"clientName":"c","objectOperations":[{"objects":["EVENT","PROGRAM"],"operations":["DELETE"],"callbackUrl":%q}]}`
			venOf    = `{"objectType":"BL_VEN_REQUEST","clientID":"one","venName":"one","targets":%s}`
			resource = `{"objectType":"BL_RESOURCE_REQUEST","clientID":"one","resourceName":"r","venID":%q,"targets":["west"]}`
		)

		token := f.client(f.org, "one", flex.OpenADRNode)
		ven := f.want(201, f.bl, "POST", "/vens", fmt.Sprintf(venOf, `["east","north"]`)).field("id")
		at := f.want(201, f.bl, "POST", "/resources", fmt.Sprintf(resource, ven)).field("id")
		f.want(201, token, "POST", "/subscriptions", fmt.Sprintf(sub, h.URL+"/one"))
		for _, targets := range []string{`["east"]`, `["north"]`, `["west"]`, `null`} {
			program := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "p"+targets, targets)).field("id")
			f.want(201, f.bl, "POST", "/events", fmt.Sprintf(anEvent, program, `null`))
		}

		for _, c := range []struct {
			step, method, path, body string
			want                     []string
		}{
			{"the same", "PUT", "/vens/" + ven, fmt.Sprintf(venOf, `["north","east"]`), nil},
			{"one less", "PUT", "/vens/" + ven, fmt.Sprintf(venOf, `["north"]`), []string{"/one : DELETE PROGRAM", "/one : DELETE EVENT"}},
			{"one more", "PUT", "/vens/" + ven, fmt.Sprintf(venOf, `["north","east"]`), nil},
			{"no resource", "DELETE", "/resources/" + at, "", []string{"/one : DELETE PROGRAM", "/one : DELETE EVENT"}},
		} {
			f.want(200, f.bl, c.method, c.path, c.body)
			if _, err := f.server.ADR.SendNotices(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.received(t, c.step, c.want...)
		}
	})
}

// TestNotices_OwnTargetTakenOfEvents: a VEN that subscribed to events alone is notified too
// when its targets are taken.
func TestNotices_OwnTargetTakenOfEvents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		h := newHook(t)
		const (
			sub   = `{"clientName":"c","objectOperations":[{"objects":["EVENT"],"operations":["DELETE"],"callbackUrl":%q}]}`
			venOf = `{"objectType":"BL_VEN_REQUEST","clientID":"one","venName":"one","targets":%s}`
		)

		token := f.client(f.org, "one", flex.OpenADRNode)
		ven := f.want(201, f.bl, "POST", "/vens", fmt.Sprintf(venOf, `["east"]`)).field("id")
		f.want(201, token, "POST", "/subscriptions", fmt.Sprintf(sub, h.URL+"/one"))
		program := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "p", `["east"]`)).field("id")
		f.want(201, f.bl, "POST", "/events", fmt.Sprintf(anEvent, program, `null`))

		f.want(200, f.bl, "PUT", "/vens/"+ven, fmt.Sprintf(venOf, `["north"]`))
		if _, err := f.server.ADR.SendNotices(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.received(t, "one less", "/one : DELETE EVENT")
	})
}
