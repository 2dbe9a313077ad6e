package control_test

import (
	"encoding/json"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

// scenario is a vector of the interface's worked examples.
type scenario struct {
	Input struct {
		PlugInAt time.Time `json:"plug_in_at"`
		Ready    string    `json:"ready_by_wall"`
		Tariff   struct {
			OffPeak string          `json:"off_peak_times"`
			Zone    string          `json:"timezone"`
			Type    flex.TariffType `json:"tariff_type"`
		}
		Power  float64 `json:"charger_power_kw"`
		Intent struct {
			Energy float64           `json:"energy_required_kwh"`
			Peak   bool              `json:"may_charge_peak"`
			Mode   flex.ChargingMode `json:"charging_mode"`
		}
		Events []struct {
			At    time.Time
			Type  string
			EndAt time.Time `json:"end_at"`
		}
	}
	Expected struct {
		Profile json.RawMessage `json:"charging_profile"`
	}
}

// run plugs the scenario's car in, tariff and intent told before.
func (h *fixture) run(name string) (v scenario) {
	h.Helper()
	h.vector(name, &v)
	in := v.Input
	h.micro.Store(in.PlugInAt.UnixMicro())

	wall, err := flex.ParseWallTime(in.Ready)
	if err != nil {
		h.Fatal(err)
	}

	h.event(control.Event{Kind: control.TariffUpdate, Tariff: &flex.Tariff{OffPeak: in.Tariff.OffPeak, Zone: in.Tariff.Zone, Type: in.Tariff.Type}})
	h.event(control.Event{Kind: control.IntentUpdate, Intent: &flex.Intent{
		Need: flex.FromKWh(in.Intent.Energy), ReadyByLocal: &wall, MayChargePeak: in.Intent.Peak, Mode: in.Intent.Mode}})

	h.event(control.Event{Kind: control.PlugIn})
	return v
}

func TestScenario_Profiles(t *testing.T) {
	for _, name := range []string{"scenario-1-overnight", "scenario-2a-fill-off-peak"} {
		t.Run(name, func(t *testing.T) {
			each(t, "2026-04-14T22:00:00Z", func(h *fixture) {
				v := h.run(name)

				profile, err := ocpp.New(h.asset, h.look().Current.Steps)
				if err != nil {
					t.Fatal(err)
				}

				got, want := map[string]any{}, map[string]any{}
				json.Unmarshal(profile.Message(1, ocpp.Form{Bare: true, Nulls: true}), &got)
				json.Unmarshal(v.Expected.Profile, &want)
				want["chargingProfileId"] = float64(profile.ID)
				a, _ := json.Marshal(got)

				b, _ := json.Marshal(want)
				if string(a) != string(b) {
					t.Errorf("got\n%s\nwant\n%s", a, b)
				}
			})
		})
	}
}

func TestScenario_MatchIntent(t *testing.T) {
	each(t, "2026-04-14T22:00:00Z", func(h *fixture) {
		h.run("scenario-2b-match-intent")
		s := h.look().Current
		var open time.Duration

		for _, p := range s.Steps {
			if p.Limit > 0 {
				open += p.Len()
				if p.From.Before(at("2026-04-14T23:30:00Z")) || p.To.After(at("2026-04-15T05:30:00Z")) {
					t.Errorf("charges in peak time, from %v", p.From)
				}
			}
		}

		if open != 82*time.Minute { // 10 kWh at 7.4 kW, to the minute upward
			t.Errorf("charges for %v, want 1h22m", open)
		}

		if !s.End().Equal(at("2026-04-15T07:00:00Z")) {
			t.Errorf("ends at %v", s.End())
		}
	})
}

func TestScenario_PeakAllowed(t *testing.T) {
	each(t, "2026-04-14T22:00:00Z", func(h *fixture) {
		h.run("scenario-3b-intent-over-window-peak-allowed")
		var off, peak time.Duration
		window := flex.Span{From: at("2026-04-14T23:30:00Z"), To: at("2026-04-15T05:30:00Z")}

		for _, p := range h.look().Current.Steps {
			if p.Limit > 0 {
				off += p.Meet(window).Len()
				peak += p.Len() - p.Meet(window).Len()
			}
		}

		if off != 6*time.Hour || peak != 5*time.Minute { // 0.6 kWh at 7.4 kW
			t.Errorf("charges for %v off-peak and %v in the peak, want 6h and 5m", off, peak)
		}
	})
}

func TestScenario_ChargeNow(t *testing.T) {
	each(t, "2026-04-14T22:00:00Z", func(h *fixture) {
		v := h.run("charge-now")
		planned := h.look().Current
		ev := v.Input.Events[0]
		h.micro.Store(ev.At.UnixMicro())
		h.event(control.Event{Kind: control.ChargeNow, EndAt: ev.EndAt})

		forced := h.look().Current
		for _, p := range forced.Steps {
			want := flex.Watts(0)
			if p.From.Before(ev.EndAt) || p.From.Equal(at("2026-04-14T23:30:00Z")) {
				want = flex.NoLimit
			}

			if p.Limit != want {
				t.Errorf("limit %d from %v, want %d", p.Limit, p.From, want)
			}
		}

		h.wait(5 * time.Minute)
		h.event(control.Event{Kind: control.ChargeNowDeleted})

		again := h.look().Current
		if again.Generation != 3 || forced.Generation != 2 || planned.Generation != 1 {
			t.Errorf("generations %d, %d, %d", planned.Generation, forced.Generation, again.Generation)
		}

		if again.Steps[0].Limit != 0 || !again.Steps[0].From.Equal(at("2026-04-14T22:15:00Z")) ||
			again.Steps[1].From != planned.Steps[1].From || again.Steps[1].To != planned.Steps[1].To {
			t.Errorf("after charge-now was taken back: %v", again.Steps)
		}
	})
}
