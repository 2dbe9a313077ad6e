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
		d.wants(d.post(path+"/supply", form), "The capacity is set, from the day that the list says.", "13.8", "23", "set for this site")
		for _, kw := range []string{"0.5", "10001", "x"} {
			if a := d.do("POST", path+"/supply", url.Values{"import_kw": {kw}, "reason": {"x"}, "sure": {"on"}}); a.status/100 != 4 {
				t.Errorf("%s kW: %d", kw, a.status)
			}
		}

		d.wants(d.page("/console/audit"), "set supply capacity", "60 A fuse")
		fuse := url.Values{"fuse_a": {"40"}, "phases": {"3"}, "reason": {"three phases"}, "sure": {"on"}}
		d.wants(d.post(path+"/supply", fuse), "27.6 kW import", "a main fuse of 40 A on 3 phases")
		for _, bad := range []url.Values{{"fuse_a": {"x"}}, {"fuse_a": {"1"}}, {"fuse_a": {"60"}, "import_kw": {"13.8"}}} {
			bad["reason"], bad["sure"] = []string{"x"}, []string{"on"}
			if a := d.do("POST", path+"/supply", bad); a.status/100 != 4 {
				t.Errorf("%v: %d", bad, a.status)
			}
		}

		// From a day on, with what was recorded. A day in the future and an impossible day are
		// refused.
		form = url.Values{"import_kw": {"18.4"}, "from": {"2026-01-02"}, "repair": {"on"}, "reason": {"80 A since New Year"}, "sure": {"on"}}
		d.wants(d.post(path+"/supply", form), "Capacity and powers, from when on", "18.4 kW import", "Fri 2 Jan, 00:00")
		d.wants(d.page("/console/audit"), "from 2026-01-02, as a repair: 80 A since New Year")
		for _, day := range []string{"2027-01-01", "yesterday"} {
			form.Set("from", day)
			if a := d.do("POST", path+"/supply", form); a.status/100 != 4 {
				t.Errorf("from %s: %d", day, a.status)
			}
		}

		// An asset's rated power, in the same way.
		asset := "/console/assets/" + s.assets[plain].String()
		form = url.Values{"power_kw": {"3.6"}, "from": {"2026-01-02"}, "reason": {"the plate says 3.6"}, "sure": {"on"}}
		d.wants(d.post(asset+"/power", form), "The power is set", "3.6 kW now")
		d.wants(d.page(path), "CP-2041: 7.4 kW", "CP-2041: 3.6 kW")
		d.wants(d.page("/console/audit"), "set rated power", "3.6 kW, from 2026-01-02: the plate says 3.6")
		d.wants(d.page(asset), "by its power: none were set")

		form = url.Values{"power_kw": {"7.2"}, "phases": {"3"}, "reason": {"wired for three"}, "sure": {"on"}}
		d.wants(d.post(asset+"/power", form), "set for this asset")
		d.wants(d.page("/console/audit"), "7.2 kW on 3-phase, from now on: wired for three")
		one := url.Values{"power_kw": {"7.2"}, "phases": {"1"}, "phase": {"L2"}, "reason": {"wired on L2"}, "sure": {"on"}}
		d.wants(d.post(asset+"/power", one), "1, on L2", "set for this asset")
		d.wants(d.page("/console/audit"), "7.2 kW on 1-phase, phase L2, from now on: wired on L2")
		one.Set("phase", "unknown")
		d.wants(d.post(asset+"/power", one), "<dd>1 <span")

		for _, wrong := range [][2]string{{"phases", "2"}, {"power_kw", "0"}, {"phase", "L4"}} {
			form.Set(wrong[0], wrong[1])
			if a := d.do("POST", asset+"/power", form); a.status/100 != 4 {
				t.Errorf("%v: %d", wrong, a.status)
			}
			form.Set("phases", "3")
			form.Del("phase")
		}
	})
}
