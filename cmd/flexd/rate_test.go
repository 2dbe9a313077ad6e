package main

import (
	"encoding/json"
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// The power that an asset really draws is shown as it is learned from a session, pinned and
// reset. The power of another asset does not change, and each change is in the audit log.
func TestRate(t *testing.T) {
	flexd, h, seed := openSeeded(t)
	id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)
	other := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 11000)

	for _, kind := range []control.Kind{control.PlugIn, control.PlugOut} {
		ev := control.Event{Kind: kind}
		if kind == control.PlugIn {
			ev.Intent = &flex.Intent{Need: flex.FromKWh(10), ReadyByLocal: new(flex.WallTime(7 * 60 * 60e9))}
		}
		if err := h.Control.Event(t.Context(), seed.Org, id, ev); err != nil {
			t.Fatal(err)
		}
	}

	if code, said := flexd("rate show " + id.String()); code != exitDone || !strings.Contains(said, "nothing was learned") || strings.Contains(said, "HALF-HOURS") {
		t.Errorf("before anything was learned: %d %s", code, said)
	}

	seed.Exec(`INSERT INTO rate_session (session_id, org_id, asset_id, number, vehicle_w, from_at, to_at, half_hours, power_w, at_least_w, minimum_w, delay_s, tail_wh)
		SELECT id, org_id, asset_id, number, 0, plugged_in_at, plugged_in_at + 18000000000, 9, 3600, 3500, 0, 240, 700 FROM session`)

	for _, step := range []struct {
		line string
		code int
		want []string
	}{
		{"show", exitDone, []string{"HALF-HOURS", "3.6", "4m0s", "0.7"}},
		{"show --json", exitDone, []string{`"planned_kw": 3.6`, `"nominal_kw": 7.4`, `"power_kw": 3.6`, `"start_delay_minutes": 4`, `"tail_kwh": 0.7`}},
		{"pin 5", exitDone, []string{"5 kW"}},
		{"show --json", exitDone, []string{`"planned_kw": 5`, `"pinned_kw": 5`, `"origin": "operator"`}},
		{"pin 0.1", exitUsage, []string{"0.5", "350"}},
		{"pin 99", exitUsage, []string{"99 kW", "7.4 kW at most"}},
		{"pin 7.41", exitUsage, []string{"7.4 kW at most"}},
		{"pin much", exitUsage, []string{"much"}},
		{"show --json", exitDone, []string{`"pinned_kw": 5`}},
		{"reset --json", exitDone, []string{`"planned_kw": 7.4`, `"sessions": []`}},
	} {
		words := strings.Fields(step.line)
		line := strings.Join(append([]string{"rate", words[0], id.String()}, words[1:]...), " ")
		code, said := flexd(line)
		if code != step.code {
			t.Errorf("%s: %d %s", line, code, said)
		}

		for _, want := range step.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %s in %s", line, want, said)
			}
		}
	}

	_, said := flexd("rate show --json " + other.String())
	var row rateRow
	if err := json.Unmarshal([]byte(said), &row); err != nil || row.NominalKW != 11 || row.PinnedKW != nil || len(row.Sessions) > 0 {
		t.Errorf("the other asset: %v %s", err, said)
	}

	// An external id does as well, while one organisation alone has it.
	seed.Exec(`UPDATE asset SET external_id = 'my-charger' WHERE id = $1`, id.Bytes())
	if code, said := flexd("rate show my-charger --json"); code != exitDone || !strings.Contains(said, id.String()) {
		t.Errorf("by its external id: %d %s", code, said)
	}

	if code, said := flexd("org add Neighbours --username neighbours"); code != exitDone {
		t.Fatal(said)
	}

	seed.Exec(`UPDATE asset SET external_id = 'my-charger', org_id = (SELECT id FROM org WHERE name = 'Neighbours') WHERE id = $1`, other.Bytes())

	for _, refused := range []struct {
		line string
		code int
		want string
	}{
		{"rate show my-charger", exitUsage, "2 organisations have an asset with the external id"},
		{"rate show nobody", exitFailed, `there is no asset with the id or the external id "nobody"`},
		{"rate pin " + seed.Org.String() + " 3.6", exitFailed, "there is no asset of that id"},
		{"rate reset " + flex.AssetID{1}.String(), exitFailed, "there is no asset of that id"},
	} {
		if code, said := flexd(refused.line); code != refused.code || !strings.Contains(said, refused.want) {
			t.Errorf("%s: %d %s", refused.line, code, said)
		}
	}

	code, said := flexd("audit list")
	if pins, resets := strings.Count(said, "pin charging rate"), strings.Count(said, "reset charging rate"); code != exitDone || pins != 4 || resets != 1 {
		t.Errorf("the audit log has %d pins and %d resets: %d %s", pins, resets, code, said)
	}
}

// A heater has no charging rate: what was learned of its heat is forgotten, and JSON says so.
func TestRate_ResetHeat(t *testing.T) {
	flexd, _, seed := openSeeded(t)
	id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.HeatPump, 3000)

	code, said := flexd("rate reset --json " + id.String())
	shown, text := flexd("rate show --json " + id.String())
	var known heatRow
	if err := json.Unmarshal([]byte(text), &known); err != nil || shown != exitDone || known.Certainty != "none" || known.Loss <= 0 {
		t.Errorf("%d %q: %v", shown, text, err)
	}
	if code, said := flexd("rate show " + id.String()); code != exitDone || !strings.Contains(said, "nothing was learned yet") {
		t.Errorf("%d %s", code, said)
	}

	tank := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.HotWaterTank, 3000)
	code2, text2 := flexd("rate show --json " + tank.String())
	var water heatRow
	if err := json.Unmarshal([]byte(text2), &water); err != nil || code2 != exitDone || water.UsedInDay <= 0 || water.Loss != 0 {
		t.Errorf("%d %q: %v", code2, text2, err)
	}
	if code, said := flexd("rate show " + tank.String()); code != exitDone || !strings.Contains(said, "drawn and lost in a day") {
		t.Errorf("%d %s", code, said)
	}

	battery := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Battery, 3000)
	if code, said := flexd("rate show " + battery.String()); code != exitFailed || !strings.Contains(said, "is a battery, of which no charging rate is learned") {
		t.Errorf("a battery: %d %s", code, said)
	}
	if code, said := flexd("rate pin " + tank.String() + " 2"); code != exitUsage || !strings.Contains(said, "hot water tank") {
		t.Errorf("a tank's rate is pinned: %d %s", code, said)
	}

	var row heatForgottenRow
	if err := json.Unmarshal([]byte(said), &row); err != nil || code != exitDone || row.AssetID != id || row.Days != 0 {
		t.Errorf("%d %q: %v", code, said, err)
	}
	if code, said := flexd("rate reset " + id.String()); code != exitDone || !strings.Contains(said, "is forgotten") {
		t.Errorf("%d %s", code, said)
	}
}
