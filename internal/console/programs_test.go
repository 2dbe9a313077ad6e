package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestPrograms binds an OpenADR program after a preview, and ends that. A preview stores
// nothing, and impossible bindings are refused.
func TestPrograms(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.wants(d.page("/console/programs"), "There is no program.")
		d.wants(d.page("/console/instructions"), `href="/console/programs?org=`)

		business := adr.Client{Org: s.Org, ID: "bl", Business: true}
		o, err := (&adr.Service{DB: d.db}).Create(t.Context(), business, flex.ADRProgram, map[string]any{"programName": "Evening peak"})
		if err != nil {
			t.Fatal(err)
		}

		bound := func() (n int) {
			err := d.db.Read(t.Context(), s.Org, func(tx *store.Tx) error {
				found, err := tx.ADRBindings(t.Context(), o.ID)
				n = len(found)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}

		form := url.Values{"org": {s.Org.String()}, "program": {o.ID.String()}, "kind": {"instruction"}, "service": {"dno"}, "simple": {"-100, -200"}, "price": {"300"}}
		d.wants(d.do("POST", "/console/programs/preview", form).body, "Evening peak", "Nothing was changed yet", "become instructions, for the whole fleet",
			"<dd>dno</dd>", "<dd>£300.00/MWh</dd>", "<dd>−100 kW, −200 kW</dd>", "Type “bind”")
		if bound() != 0 {
			t.Error("a preview is kept")
		}
		if a := d.do("POST", "/console/programs/bind", form); a.status != http.StatusBadRequest {
			t.Errorf("without the word: %d", a.status)
		}

		form.Set("typed", "bind")
		form.Set("simple", "−100, 100 less")
		d.wants(d.do("POST", "/console/programs/bind", form).body, "A change at a level is &#34;100 less&#34;: give kW such as -100, negative to draw less, with commas between.")
		form.Set("simple", "−100, −200") // as the console writes them
		for name, wrong := range map[string]string{"kind": "x", "service": "x", "simple": "-100,x", "price": "NaN"} {
			was := form.Get(name)
			form.Set(name, wrong)
			if a := d.do("POST", "/console/programs/bind", form); a.status != http.StatusBadRequest {
				t.Errorf("%s %q: %d", name, wrong, a.status)
			}
			form.Set(name, was)
		}

		d.wants(d.post("/console/programs/bind", form), "Evening peak", "The binding is changed", "−100 kW, −200 kW", "dno")
		d.wants(d.page("/console/audit"), "instruction for the whole fleet, service dno, £300.00/MWh, kW at levels -100, -200")
		d.wants(d.page("/console/programs.csv"), "id,name,bound_as", "Evening peak,instruction,,,dno,300")
		form.Set("kind", "")
		d.wants(d.do("POST", "/console/programs/preview", form).body, "The binding would end", "Type “unbind”")
		if a := d.do("POST", "/console/programs/bind", form); a.status != http.StatusBadRequest {
			t.Errorf("the end with the word of the start: %d", a.status)
		}

		form.Set("typed", "unbind")
		d.wants(d.post("/console/programs/bind", form), "not bound")
		if bound() != 0 {
			t.Error("the binding did not end")
		}
	})
}
