package console_test

import "testing"

// A filter whose value cannot be is 422 on every list, as a name that is no filter is, and as in the interface.
func TestFilters_Value(t *testing.T) {
	s := testScene(t)
	for _, path := range []string{
		"deliveries?status=five", "deliveries?state=lost", "deliveries?colour=red", "readings?to=yesterday", "readings?days=0", "readings?days=32",
		"ahead?kind=sideways", "ahead?day=tomorrow", "prices?day=today", "assets?state=broken", "assets?sort=colour",
		"fleet?organisation=x", "fleet.json?organisation=x", "prices.csv?date=2026-01-14", "ahead.csv?date=2026-01-14", "limits.csv?feeder=a", "engine?asset=a",
		"alerts.json?kind=refused", "developer?name=x", "settlement/terms?name=x",
	} {
		if a := s.service.get("/console/" + path); a.status != 422 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}
