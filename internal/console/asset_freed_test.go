package console_test

import (
	"net/url"
	"strings"
	"testing"
)

// An asset that is excluded while a car is plugged in is not called unplugged: as far as is
// known, the car is still there.
func TestAsset_ExcludedIsNotUnplugged(t *testing.T) {
	s := testScene(t)
	d := s.service
	id := s.assets[plain].String()
	a := d.do(
		"POST",
		"/console/assets/selection",
		url.Values{"action": {"exclude"}, "sure": {"on"}, "id": {id}},
	)
	if a.status != 200 {
		t.Fatalf("exclude: %d %s", a.status, a.body)
	}

	d.wants(
		d.page("/console/assets/"+id),
		"a car is still plugged in",
		"excluded since",
	)
	for _, path := range []string{"/console/assets/" + id, "/console/assets?state=excluded"} {
		if strings.Contains(d.page(path), ">unplugged<") {
			t.Errorf("%s calls it unplugged", path)
		}
	}
}
