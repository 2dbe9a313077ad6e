package console_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestAsset_Gives: the discharge that a schedule plans is drawn below zero, between the times
// of charging. The what-if question says that the car does without.
func TestAsset_Gives(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		car := s.assets[plain]
		from, to := at("2026-01-14T22:00:00Z").Unix(), at("2026-01-14T23:00:00Z").Unix()
		d.Exec(`UPDATE schedule SET discharge = $2 WHERE asset_id = $1`, car.Bytes(), fmt.Sprintf(
			`{"power_w":7000,"capacity_wh":60000,"reserve_wh":10000,"wear_p":0,"stored_wh":40000,"target_wh":50000,"gives":[[%d,%d,3500],[%d,%d,7000]]}`,
			from, from+1800, from+1800, to))

		var plot struct {
			Plan        [][3]float64
			Generations []struct{ Plan [][3]float64 }
		}
		if err := json.Unmarshal([]byte(d.page("/console/assets/"+car.String()+"/series.json")), &plot); err != nil {
			t.Fatal(err)
		}

		for _, plan := range [][][3]float64{plot.Plan, plot.Generations[len(plot.Generations)-1].Plan} {
			found, before := map[[3]float64]bool{}, 0.0
			for _, p := range plan {
				found[p] = true
				if p[0] < before || p[1] <= p[0] {
					t.Errorf("%v is out of order: %v", p, plan)
				}
				before = p[1]
			}

			if !found[[3]float64{float64(from), float64(from + 1800), -3.5}] || !found[[3]float64{float64(from + 1800), float64(to), -7}] {
				t.Errorf("what is given is not in %v", plan)
			}
		}

		d.wants(d.page("/console/assets/"+car.String()), "planned from now on, without discharging;")
	})
}
