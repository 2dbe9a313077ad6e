package console_test

import (
	"net/url"
	"testing"
)

// TestSetCalls sets how often a site may be called, for a reason and with a tick.
func TestSetCalls(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		path := "/console/sites/" + s.sites[plain].String()
		d.wants(d.page(path), "Change the agreed calls", "no limit was agreed", "0 today, 0 this month")

		form := url.Values{"per_day": {"1"}, "per_month": {" 5 "}, "reason": {"asked on the phone"}, "sure": {"on"}}
		d.wants(d.post(path+"/calls", form), "What the household agreed to counts from now on.", "at most 1 a day, at most 5 a month", `value="5"`)
		d.wants(d.page("/console/audit"), "set agreed calls", "1 a day, 5 a month: asked on the phone")
		for _, wrong := range []string{"-1", "1001", "x", "1.5"} {
			form.Set("per_day", wrong)
			if a := d.do("POST", path+"/calls", form); a.status/100 != 4 {
				t.Errorf("%s a day: %d", wrong, a.status)
			}
		}

		form = url.Values{"per_month": {"0"}, "reason": {"none at all"}, "sure": {"on"}}
		d.wants(d.post(path+"/calls", form), "at most 0 a month")
		form = url.Values{"reason": {"any"}, "sure": {"on"}}
		d.wants(d.post(path+"/calls", form), "no limit was agreed")
	})
}
