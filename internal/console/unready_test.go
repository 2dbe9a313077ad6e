package console_test

import (
	"strings"
	"testing"

	"flexd/internal/control"
)

// A car that got less than it needed is on the page of the day of its deadline, with the
// cause, and in the page's files.
func TestUnready(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.event(shortfall, control.Event{Kind: control.PlugOut})
		d.goTo("2026-01-15T18:00:00Z")
		s.serve()
		d.login()

		id := s.assets[shortfall].String()
		const base = "/console/past/unready"
		d.wants(
			d.page(base+"?day=2026-01-15"),
			"/console/assets/"+id+"?from=2026-01-15",
			`<td class="wrap">The plan did not have all</td>`,
		)
		d.wants(d.page(base), "/console/assets/"+id) // today
		d.wants(
			d.page(base+".csv?day=2026-01-15&cause=plan"),
			"asset_id,external_id,ready_by",
			id,
		)
		for _, path := range []string{base + ".json?day=2026-01-15&cause=unplugged_early", base + "?day=2026-01-14"} {
			if strings.Contains(d.page(path), id) {
				t.Errorf("%s has the car", path)
			}
		}

		if a := d.do("GET", base+"?cause=rain", nil); a.status != 422 {
			t.Errorf("an unknown cause: %d", a.status)
		}
		d.wants(d.page("/console/past?day=2026-01-15"), base+"?day=2026-01-15")
	})
}
