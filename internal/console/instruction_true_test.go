package console_test

import (
	"net/url"
	"strings"
	"testing"
)

// TestInstruction_Truth looks at the pages of instructions that call nobody, that fall short,
// that run, and that were stopped.
func TestInstruction_Truth(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		send := func(change url.Values) string {
			change["typed"] = []string{"send"}
			return d.post("/console/instructions/send", s.peakForm(change))
		}

		newest := func() string { return d.link(d.page("/console/instructions"), "/console/instructions/0") }
		never := func(page string, words ...string) {
			t.Helper()
			for _, w := range words {
				if strings.Contains(page, w) {
					t.Errorf("the page says %q", w)
				}
			}
		}

		empty := send(url.Values{"from": {"2026-01-15T12:00"}, "to": {"2026-01-15T12:30"}, "reason": {"noon"}})
		d.wants(empty, "No asset was called.", "No asset is called now: nothing comes of it.", "A preview of the same says why.")
		d.wants(d.page("/console/fleet"), "instruction_uncalled", "1 instruction of the grid that nothing comes of")
		d.wants(d.post(newest()+"/stop", url.Values{"typed": {"stop"}}), "It was stopped before it began", "Nothing came of it.")
		never(d.page("/console/fleet"), "instruction_uncalled")

		short := send(url.Values{"kw": {"500"}, "reason": {"all that there is"}})
		d.wants(short, "at an extra cost of", "<td>no: the instruction does not say what it pays</td>")
		never(short, "No asset is called now", "It was stopped")
		d.wants(d.page(newest()+"/report.json"), `"asked_kwh":-250`, `"short_kwh":2`)

		stopped := d.post(newest()+"/stop", url.Values{"typed": {"stop"}})
		d.wants(stopped, "It was stopped before it began", "no: it was let go before the instruction began", "were to cost")
		never(stopped, "at an extra cost of", "Stop the instruction")

		send(url.Values{"from": {"2026-01-14T21:45"}, "to": {"2026-01-15T03:00"}, "price": {"80"}, "reason": {"the evening"}})
		path := newest()
		d.goTo("2026-01-14T22:10:00Z")
		running := d.page(path)
		d.wants(running, ">running</span>", "Stop the instruction", "<td>yes</td>")
		never(running, "No asset is called now", "It was stopped")

		half := d.post(path+"/stop", url.Values{"typed": {"stop"}})
		d.wants(half, ">stopped</span>", "Nothing is asked for from when it was stopped", `<td class="num">–</td>`, "<td>yes</td>")
		never(half, "It was stopped before it began")
	})
}
