package console_test

import (
	"net/url"
	"testing"
)

// TestSetSupply changes what a site's connection can carry, for a reason and with a tick.
func TestSetSupply(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		path := "/console/sites/" + s.sites[plain].String()
		d.wants(d.page(path), "Change the capacity", "the default", "none was set")
		form := url.Values{"import_kw": {"13.8"}, "reason": {"60 A fuse"}, "sure": {"on"}}
		d.wants(d.post(path+"/supply", form), "The capacity is set.", "13.8", "23", "set for this site")
		for _, kw := range []string{"0.5", "10001", "x"} {
			if a := d.do("POST", path+"/supply", url.Values{"import_kw": {kw}, "reason": {"x"}, "sure": {"on"}}); a.status/100 != 4 {
				t.Errorf("%s kW: %d", kw, a.status)
			}
		}
		d.wants(d.page("/console/audit"), "set supply capacity", "60 A fuse")
	})
}
