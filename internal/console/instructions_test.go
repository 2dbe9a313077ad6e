package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// peakForm asks the scene's organisation for less through the night.
func (s *scene) peakForm(change url.Values) url.Values {
	form := url.Values{
		"org": {s.Org.String()}, "kind": {"less"}, "kw": {"5"}, "from": {"2026-01-15T00:00"}, "to": {"2026-01-15T06:00"},
		"service": {"dno"}, "reason": {"evening peak"},
	}
	for name, value := range change {
		form[name] = value
	}
	return form
}

// TestInstructions previews, sends, shows and stops instructions, each only when it is meant.
func TestInstructions(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.wants(d.page("/console/instructions"), "Nothing was instructed yet.", `<option>dfs</option>`)

		preview := d.do("POST", "/console/instructions/preview", s.peakForm(nil))
		d.wants(preview.body, "5 kW less", "Nothing was sent yet.", "Who is called", `name="reason" value="evening peak"`)
		d.wants(d.page("/console/instructions"), "Nothing was instructed yet.")

		if a := d.do("POST", "/console/instructions/send", s.peakForm(nil)); a.status != http.StatusBadRequest {
			t.Errorf("sent without a word: %d", a.status)
		}

		sent := d.post("/console/instructions/send", s.peakForm(url.Values{"typed": {"send"}}))
		d.wants(sent, "The instruction is sent.", ">ordered</span>", "evening peak", `data-plot="instruction"`, "Their baseline")
		if a := d.do("POST", "/console/instructions/send", s.peakForm(url.Values{"typed": {"send"}})); a.status != http.StatusConflict {
			t.Errorf("a form that was sent twice: %d", a.status)
		}

		d.post("/console/instructions/send", s.peakForm(url.Values{"typed": {"Send"}, "kind": {"limit"}, "kw": {"500"}, "reason": {"a cable"}}))
		d.post("/console/instructions/send", s.peakForm(url.Values{"typed": {"send"}, "kind": {"more"}, "unfair": {"on"}, "price": {"80"}}))

		list := d.page("/console/instructions")
		d.wants(list, "3 instructions", "not above 500 kW", "5 kW more", "3 instructions bind.")
		older := list[strings.LastIndex(list, `<a href="/console/instructions/0`):]
		before := strings.TrimPrefix(d.link(older, "/console/instructions/"), "/console/instructions/")
		d.wants(d.page("/console/instructions?before="+before), "Emergency stop", "3 instructions bind.")
		if n := strings.Count(d.page("/console/instructions.csv"), "\n"); n != 4 {
			t.Errorf("%d lines of CSV", n)
		}

		path := d.link(list, "/console/instructions/")
		d.wants(d.page(path+"/report.json"), `"asked_kwh":2.5`)
		d.wants(d.page(path+"/report.csv"), "start,end,asked_kwh")
		if a := d.do("POST", path+"/stop", url.Values{"typed": {"yes"}}); a.status != http.StatusBadRequest {
			t.Errorf("stopped without the word: %d", a.status)
		}

		d.wants(d.post(path+"/stop", url.Values{"typed": {"stop"}}), ">stopped</span>", "Whoever was called returns")
		if a := d.do("POST", "/console/instructions/stop", url.Values{"org": {s.Org.String()}, "typed": {"stop"}}); a.status != http.StatusBadRequest {
			t.Errorf("all stopped without the words: %d", a.status)
		}
		all := d.post("/console/instructions/stop", url.Values{"org": {s.Org.String()}, "typed": {"stop all"}})
		if strings.Contains(all, "Emergency stop") || strings.Count(all, ">stopped</span>") != 3 {
			t.Error("something binds after all was stopped")
		}
		d.wants(d.page("/console/audit"), "send instruction", "stop instructions")

		for name, value := range map[string]string{"kind": "", "kw": "much", "from": "noon", "to": "2026-01-14T00:00", "service": "none", "reason": "", "price": "-1"} {
			if a := d.do("POST", "/console/instructions/preview", s.peakForm(url.Values{name: {value}})); a.status != http.StatusBadRequest {
				t.Errorf("%s=%q: %d", name, value, a.status)
			}
		}

		for _, kw := range []string{"", " "} { // not above nothing
			if a := d.do("POST", "/console/instructions/preview", s.peakForm(url.Values{"kind": {"limit"}, "kw": {kw}})); a.status != http.StatusBadRequest {
				t.Errorf("a limit of %q kW: %d", kw, a.status)
			}
		}
		skipped := d.do("POST", "/console/instructions/preview", s.peakForm(url.Values{"from": {"2026-03-29T01:30"}, "to": {"2026-03-29T03:00"}}))
		if skipped.status != http.StatusBadRequest || !strings.Contains(skipped.body, "There is no 2026-03-29T01:30") {
			t.Errorf("a time that the clocks leave out: %d %s", skipped.status, skipped.body)
		}
		if a := d.do("POST", "/console/instructions/preview", s.peakForm(url.Values{"group": {"feeder"}})); a.status != http.StatusNotFound {
			t.Errorf("a group that there is not: %d", a.status)
		}
	})
}

// TestInstruction_Dispatched: the page of a dispatch of named batteries has no cost, because
// none is known. The page of an instruction has one.
func TestInstruction_Dispatched(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		battery := s.charged()
		from := d.db.Now().Truncate(time.Hour).Add(2 * time.Hour)
		order := store.Dispatch{
			Market: "dno",
			Span:   flex.Span{From: from, To: from.Add(time.Hour)},
			Assets: []store.DispatchedAsset{{ID: battery, Power: -1000}},
		}

		err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
			if _, err := tx.AddDispatch(t.Context(), order); err != nil {
				return err
			}
			return control.NoteDispatch(t.Context(), tx, &order)
		})
		if err != nil {
			t.Fatal(err)
		}

		d.login()
		page := d.page(d.link(d.page("/console/instructions"), "/console/instructions/"))
		d.wants(page, "1 asset; what it costs is not known", `<td class="num">–</td><td>yes</td></tr></tbody>`)
		if strings.Contains(page, "at an extra cost of") || strings.Contains(page, "£0") {
			t.Error("a cost that is not known is shown")
		}
		d.wants(d.post("/console/instructions/send", s.peakForm(url.Values{"typed": {"send"}})), "at an extra cost of")
	})
}

func TestInstruction_Browser(t *testing.T) {
	s := testScene(t)
	s.post("/console/instructions/send", s.peakForm(url.Values{"typed": {"send"}}))
	path := s.link(s.page("/console/instructions"), "/console/instructions/0")
	b := browse(s.service)
	b.screen("instructions", "/console/instructions")
	b.screen("instruction", path)
	b.truth(`document.querySelector("[data-plot=instruction]").dataset.drawn === "yes"`)
	if text := b.text("main"); !strings.Contains(text, "CP-2041") || !strings.Contains(text, "5 kW less, ") {
		t.Errorf("the page does not name what it called: %s", text)
	}
}
