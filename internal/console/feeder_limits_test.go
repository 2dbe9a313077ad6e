package console_test

import (
	"net/http"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestLimits shows the limits of feeders, who set them and until when, and the fallback if the
// link is lost.
func TestLimits(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.wants(d.page("/console/limits"), "No feeder is limited.", "No group has a link.")
		d.wants(d.page("/console/safety"), `href="/console/limits"`)
		if a := d.do("GET", "/console/limits?org=x", nil); a.status != http.StatusNotFound {
			t.Errorf("an organisation that there is not: %d", a.status)
		}

		ctx := t.Context()
		now := at(sceneNow)
		steps := []error{
			s.control.SetCaps(ctx, s.Org, flex.Caps{Groups: []flex.CapGroup{{Name: "feeder"}, {Name: "other"}}}),
			s.control.ImportLimits(ctx, s.Org, []flex.CapLimit{
				{Group: "other", Span: flex.Span{From: now.Add(-time.Hour), To: now.Add(time.Hour)}, Power: 15_000},
				{Group: "other", Span: flex.Span{From: now.Add(time.Hour), To: now.Add(2 * time.Hour)}, Power: 9_000},
			}),
			s.control.SetLink(ctx, s.Org, flex.CapLink{Group: "feeder", Fallback: new(flex.Watts(4_000)), Silence: time.Minute}),
		}
		for _, err := range steps {
			if err != nil {
				t.Fatal(err)
			}
		}

		list := d.page("/console/limits")
		d.wants(list, "2 limits", ">binds</span>", ">later</span>", "15 kW", "import", ">heard</span>")

		d.wait(2 * time.Minute)
		if _, err := s.control.WatchLinks(ctx); err != nil {
			t.Fatal(err)
		}
		d.wants(d.page("/console/limits"), "3 limits", ">lost</span>", "the link is heard", "fallback")
		d.wants(d.page("/console/limits.csv"), "group,start,end,limit_kw,source,binds,direction,lowest,num_sites", "feeder,", ",4,fallback,true,import,true,0")
		d.wants(d.do("GET", "/console/limits", nil, asJSON).body, `"limit_kw":15`)
	})
}
