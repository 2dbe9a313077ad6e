package console_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// levelAnswer has the data of an asset's plot about its stored energy.
type levelAnswer struct {
	Level struct {
		Unit     string
		Read     [][2]float64
		Expected [][2]float64
	}
}

func (d *service) levels(asset flex.AssetID) (a levelAnswer) {
	d.Helper()
	text := d.page("/console/assets/" + asset.String() + "/series.json")
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		d.Fatal(err)
	}

	return a
}

// reading is a reading of an asset.
func (s *scene) reading(id flex.AssetID, label flex.Label, from, to string, value float64) {
	s.Helper()
	r := flex.Reading{
		AssetID: id,
		Span:    flex.Span{From: at(from), To: at(to)},
		Label:   label,
		Value:   flex.Micro(value * 1e6),
	}

	err := s.db.Write(s.Context(), s.Org, func(tx *store.Tx) error {
		return tx.PutReadings(s.Context(), []flex.Reading{r})
	})
	if err != nil {
		s.Fatal(err)
	}
}

// heated is a scene with two tanks and a heat pump of which something was read.
func (s *scene) heated() []flex.AssetID {
	s.Helper()
	heaters := s.heaters()
	const six, eight, half = "2026-01-14T18:00:00Z", "2026-01-14T20:00:00Z", "2026-01-14T20:30:00Z"
	s.reading(heaters[0], flex.TankTemperature, six, six, 48.5)
	s.reading(heaters[0], flex.BatteryStateOfCharge, eight, eight, 100)
	s.reading(heaters[0], flex.HeatPower, eight, half, 2.75)
	s.reading(heaters[2], flex.RoomTemperature, eight, eight, 19.75)

	return heaters
}

// The pages of a tank and a heat pump have, in plot and story, their plan, what they drew, and
// their temperatures so far and planned.
func TestAsset_Heat(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		heaters := s.heated()
		s.serve()
		d.login()

		for i, want := range [][][2]float64{
			0: {{float64(at("2026-01-14T18:00:00Z").Unix()), 48.5}, {float64(at("2026-01-14T20:00:00Z").Unix()), 60}},
			1: {},
			2: {{float64(at("2026-01-14T20:00:00Z").Unix()), 19.8}},
		} {
			id := heaters[i]
			level := d.levels(id).Level
			if level.Unit != "°C" || len(level.Read) != len(want) || len(level.Expected) < 40 {
				t.Fatalf("heater %d: %+v", i, level)
			}

			for n := range want {
				if level.Read[n] != want[n] {
					t.Errorf("heater %d: read %v, want %v", i, level.Read, want)
				}
			}

			for n, e := range level.Expected {
				late := n > 0 && e[0] <= level.Expected[n-1][0]
				if late || e[1] < 10 || e[1] > 65 {
					t.Errorf("heater %d: expected %v", i, level.Expected)
				}
			}

			s.followsPlan(id)
			page := d.page("/console/assets/" + id.String())
			d.wants(page, []string{"Why the tank does this", "Why the tank does this", "Why the heat pump does this"}[i])
			d.wants(page, "Schedule 1 was made: it draws power from", "The client accepted schedule 1.", `aria-current="true">day</a>`)
			d.wants(page, ">Exclude from control</option>")
			if strings.Contains(page, ">Charge now</option>") || strings.Contains(page, "to change ready-by") {
				t.Errorf("heater %d is offered what is for cars", i)
			}
		}

		taken := d.series("/console/assets/" + heaters[0].String() + "/series.json").Readings
		if len(taken) != 1 || taken[0][2] != 2.75 {
			t.Errorf("taken %v", taken)
		}
	})
}

// What was sent to a heat pump is shown by its organisation's clock, which is two days ahead
// in this sandbox.
func TestAsset_HeatTurned(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		err := (turner{d}).Advance(t.Context(), d.Org, at("2026-01-16T21:00:00Z"))
		if err != nil {
			t.Fatal(err)
		}

		id := s.heaters()[2]
		s.serve()
		d.login()
		series := d.series("/console/assets/" + id.String() + "/series.json")
		page := d.page("/console/assets/" + id.String())
		d.wants(page, "The client accepted schedule 1.")
		if len(series.Plan) == 0 {
			t.Error("it has no plan")
		}

		_, line, _ := strings.Cut(page, "<h2>Story</h2>")
		d.wants(line, `datetime="2026-01-16T21:0`, "Schedule 1 was made", "The client accepted schedule 1.")
		if strings.Contains(line, `datetime="2026-01-14`) {
			t.Error("a push stands by the true clock")
		}
	})
}

// followsPlan compares the plan in a tank's or a heat pump's plot with the stored one.
func (s *scene) followsPlan(id flex.AssetID) {
	s.Helper()
	v := s.series("/console/assets/" + id.String() + "/series.json")
	if len(v.Plan) < 2 {
		s.Fatalf("the plan is %v", v.Plan)
	}

	for _, p := range v.Plan {
		middle := time.Unix(int64(p[0]+p[1])/2, 0)
		if kw := s.heats(id, middle); kw < p[2]-0.01 || kw > p[2]+0.01 {
			s.Errorf("at %v %g kW are drawn, planned are %g", middle.UTC(), p[2], kw)
		}
	}
}

// charged returns the scene's battery, and gives it and the car that charges now readings; the
// battery has dispatches too.
func (s *scene) charged() (battery flex.AssetID) {
	s.Helper()
	battery = s.battery()
	const seven, nine = "2026-01-14T19:00:00Z", "2026-01-14T21:00:00Z"
	s.reading(battery, flex.BatteryStateOfCharge, seven, seven, 80)
	s.reading(battery, flex.BatteryStoredEnergy, nine, nine, 3.8) // of 9.5
	s.reading(s.assets[atOnce], flex.BatteryStateOfCharge, nine, nine, 34)

	err := s.db.Write(s.Context(), s.Org, func(tx *store.Tx) error {
		_, err := tx.AddDispatch(s.Context(), store.Dispatch{
			Market: "wholesale",
			Span:   flex.Span{From: at("2026-01-14T19:30:00Z"), To: at("2026-01-14T20:30:00Z")},
			Assets: []store.DispatchedAsset{{ID: battery, Power: -2500, Without: make([]flex.Watts, 2)}},
		})

		return err
	})
	if err != nil {
		s.Fatal(err)
	}

	return battery
}

// The plots of a battery and a car have their stored energy. The battery's plot and story have
// what its dispatches asked for.
func TestAsset_Charge(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		battery := s.charged()
		d.login()

		level := d.levels(battery).Level
		if level.Unit != "%" || len(level.Read) != 2 || level.Read[0][1] != 80 || level.Read[1][1] != 40 || len(level.Expected) < 10 {
			t.Errorf("the battery holds %+v", level)
		}

		car := d.levels(s.assets[atOnce]).Level
		if car.Unit != "%" || len(car.Read) != 1 || car.Read[0][1] != 34 || len(car.Expected) != 0 {
			t.Errorf("the car holds %+v", car)
		}

		// with a capacity it is known what the car is expected to hold by ready-by
		s.Exec(`UPDATE asset SET capacity_wh = 60000 WHERE id = $1`, s.assets[atOnce].Bytes())
		car = d.levels(s.assets[atOnce]).Level
		if len(car.Expected) < 3 || car.Expected[0] != car.Read[0] {
			t.Errorf("the car is expected to hold %v", car.Expected)
		}

		last := car.Expected[len(car.Expected)-1][1]
		d.wants(d.page("/console/assets/"+s.assets[atOnce].String()), fmt.Sprintf("Its battery is expected to be %.0f %% full at ready-by.", last))
		d.wants(d.do("GET", "/console/assets/"+s.assets[atOnce].String(), nil, asJSON).body, fmt.Sprintf(`"ready_level_pct":%g`, last))

		plan := d.series("/console/assets/" + battery.String() + "/series.json").Plan
		begins, ends := float64(at("2026-01-14T19:30:00Z").Unix()), float64(at("2026-01-14T20:30:00Z").Unix())
		if len(plan) < 2 || plan[0] != [3]float64{begins, ends, -2.5} || plan[1][0] < ends {
			t.Errorf("the battery's plan is %v", plan)
		}

		d.wants(d.page("/console/assets/"+battery.String()), "A dispatch asked it to give 2.5 kW from 19:30 to 20:30.")

		// a battery that cannot be planned is asked by dispatches alone
		s.Exec(`UPDATE asset SET capacity_wh = NULL WHERE id = $1`, battery.Bytes())
		plan = d.series("/console/assets/" + battery.String() + "/series.json").Plan
		if len(plan) != 1 || plan[0] != [3]float64{begins, ends, -2.5} {
			t.Errorf("without a plan of its own the battery was asked %v", plan)
		}
	})
}

// A state of charge and a temperature are drawn, and named in the legend. If none is known,
// neither appears.
func TestBrowser_Level(t *testing.T) {
	s := testScene(t)
	d := s.service
	heaters := s.heated()
	battery := s.charged()
	d.login()
	b := browse(d)

	for _, v := range []struct {
		id    flex.AssetID
		label string
	}{
		{heaters[0], "Temperature"},
		{heaters[2], "Temperature"},
		{battery, "State of charge"},
		{s.assets[atOnce], "State of charge"},
		{s.assets[plain], ""},
	} {
		b.visit("/console/assets/" + v.id.String())
		legend := evaluate[string](b, `[...document.querySelectorAll("[data-plot=asset] .u-legend .u-series:not(.u-off) .u-label")].map((e) => e.textContent).filter((t) => /^(Temperature|State of charge)$/.test(t)).join()`)
		drawn := evaluate[int](b, drawnLevels)
		if legend != v.label || (drawn > 0) != (v.label != "") {
			t.Errorf("%v: the legend has %q, want %q; %d dots are drawn", v.id, legend, v.label, drawn)
		}
	}

	b.screen("tank", "/console/assets/"+heaters[0].String())
	b.screen("heat-pump", "/console/assets/"+heaters[2].String())
}

// drawnLevels counts the dots of the plot that have the colour of the stored energy.
const drawnLevels = `(() => {
	const canvas = document.querySelector("[data-plot=asset] canvas");
	const probe = document.createElement("canvas").getContext("2d");
	probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--level").trim();
	probe.fillRect(0, 0, 1, 1);
	const want = probe.getImageData(0, 0, 1, 1).data;
	const { width, height } = canvas;
	const dots = canvas.getContext("2d").getImageData(0, 0, width, height).data;
	let n = 0;
	for (let y = 0; y < height; y++) {
		for (let x = 0; x < width * 0.85; x++) {
			const i = 4 * (y * width + x);
			if (dots[i] === want[0] && dots[i + 1] === want[1] && dots[i + 2] === want[2] && dots[i + 3] === 255) n++;
		}
	}
	return n;
})()`

// What was learned about a heat pump's heat is on its page, and a button there deletes it.
// What was learned about another heat pump stays.
func TestBrowser_LearnedHeat(t *testing.T) {
	s := testScene(t)
	d := s.service
	heaters := s.heaters()
	tank, pump := heaters[0], heaters[2]

	err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
		c, err := tx.PlanningState(t.Context(), pump)
		if err != nil {
			return err
		}
		return tx.PutHeatModel(t.Context(), pump, &store.HeatModel{
			Day:   flex.DayAt(tx.Now()),
			Rooms: &store.BuildingRecord{Loss: 160, Capacity: 7500, Gain: 420, Miss: 0.25, Days: 14, Since: "2026-01-01", Error: 0.05},
			As:    store.HeatedAs{Power: *c.Asset.Power},
		})
	})
	if err != nil {
		t.Fatal(err)
	}

	d.login()
	b := browse(d)
	b.visit("/console/assets/" + pump.String())
	if said := b.text("#learned"); !strings.Contains(said, "160 W") || !strings.Contains(said, "14 days of readings since 2026-01-01") {
		t.Error(said)
	}

	b.run(chromedp.Click(chromedp.CSS("#learned button")), chromedp.WaitVisible(chromedp.CSS(".notice.good")))
	if said := b.text("#learned"); !strings.Contains(said, "nothing was learned yet") || !strings.Contains(said, "does not count") {
		t.Error(said)
	}
	d.wants(d.page("/console/assets/"+tank.String()), "drawn and lost in a day", "Forget what was learned")
	d.wants(d.page("/console/audit"), "reset charging rate")
}
