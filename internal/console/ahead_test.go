package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestAhead shows what a fleet can do now, what is forecast of a day, and what was offered.
func TestAhead(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.wants(d.page("/console/ahead"), "What the fleet can do", "Too few days to learn from.", "Planned, kWh", `<option value="turn_up">`)
		d.wants(d.page("/console/ahead?kind=load"), `<option value="load" selected>`)
		d.wants(d.page("/console/ahead.csv"), "start,end,kind,p50_kw")
		d.wants(d.do("GET", "/console/ahead", nil, asJSON).body, `"envelope":{`, `"confidences":[50,80,90,95,99]`)
		d.wants(d.page("/console/offers"), "Nothing was offered yet.")

		for path, status := range map[string]int{
			"/console/ahead?kind=all": http.StatusUnprocessableEntity, "/console/ahead?day=noon": http.StatusUnprocessableEntity, "/console/ahead?day=2020-01-01": http.StatusBadRequest,
			"/console/ahead?group=feeder": http.StatusNotFound, "/console/ahead?org=x": http.StatusNotFound,
			"/console/offers?org=x": http.StatusNotFound, "/console/offers?before=x": http.StatusNotFound,
		} {
			if a := d.do("GET", path, nil); a.status != status {
				t.Errorf("%s: %d, want %d", path, a.status, status)
			}
		}

		from := time.UnixMicro(d.micro.Load()).UTC().Truncate(time.Hour).Add(2 * time.Hour)
		offered := flex.Offer{
			Span: flex.Span{From: from, To: from.Add(time.Hour)}, Service: "dfs", Confidence: 90, Power: 12_500, Price: flex.FromGBPPerMWh(41.2), Who: "Ann",
		}
		err := d.db.Write(t.Context(), s.Org, func(tx *store.Tx) error { return tx.AddOffer(t.Context(), &offered) })
		if err != nil {
			t.Fatal(err)
		}

		list := d.page("/console/offers")
		d.wants(list, "1 offer", "P90", "12.5", "41.20", "down", "By service, on this page", "Ann")
		if strings.Contains(list, "kept</span>") {
			t.Error("an offer is judged before its day is over")
		}
		d.wants(d.page("/console/offers.csv"), "id,service,direction", ",dfs,down,")

		d.wait(48 * time.Hour)
		d.login()
		d.wants(d.page("/console/offers"), ">not kept</span>")
	})
}

// nights has a car draw 14.8 kWh from midnight on in each of the 40 nights before the scene.
func (s *scene) nights() {
	const nights = 40
	car := s.Asset(s.sites[plain], flex.Charger, 7400)
	id := func(kind, i int) []byte {
		v := flex.MakeID[struct{}](time.UnixMilli(int64(kind)<<32), [10]byte{9: byte(i)})
		return v[:]
	}
	at := func(i, hours int) int64 {
		return flex.DayAt(at(sceneNow)).Add(i - nights).Start().Add(time.Duration(hours-6) * time.Hour).UnixMicro()
	}

	s.Rows("session", strings.Fields("id org_id asset_id site_id number plugged_in_at plugged_out_at ready_by generation event_id"), nights, func(i int) []any {
		return []any{id(2, i), s.Org.Bytes(), car.Bytes(), s.sites[plain].Bytes(), 1 + i, at(i, 0), at(i, 13), at(i, 13), 1 + i, id(3, i)}
	})
	s.Rows("schedule", strings.Fields(`event_id org_id asset_id session_id generation cause made_at from_at to_at steps ready_by
		need_wh delivered_wh count_from power_w running may_charge_peak mode off_peak zone tariff_type origins value`), nights, func(i int) []any {
		return []any{id(3, i), s.Org.Bytes(), car.Bytes(), id(2, i), 1 + i, "plug-in", at(i, 0), at(i, 0), at(i, 13), "21600x0 7200x99999 18000x0", at(i, 13),
			14_800, 0, at(i, 0), 7400, false, false, "minimise_charging_time", "00:00-06:00", "Europe/London", "dual_rate", "event asset event", 0}
	})
	s.QueueEnded()
}

// TestAhead_Past shows a forecast from past days, and the actual values of a past one.
func TestAhead_Past(t *testing.T) {
	s := testScene(t)
	s.nights()
	s.wants(s.page("/console/ahead?kind=load"), "P90, kW", `data-plot="ahead"`, `data-kind="load"`, "The day before", "How sure it was")

	past := s.page("/console/ahead?kind=load&day=2026-01-11")
	s.wants(past, `<td class="num">7.4</td></tr>`, "the day after")
	if lines := strings.Count(s.page("/console/ahead.csv?day=2026-01-11"), "\n"); lines != 1+3*48 {
		t.Errorf("%d lines of CSV", lines)
	}
}

// TestAhead_Browser draws the forecast of a day that is over.
func TestAhead_Browser(t *testing.T) {
	s := testScene(t)
	s.nights()
	b := browse(s.service)
	b.screen("ahead", "/console/ahead?kind=load&day=2026-01-11")
	b.truth(`document.querySelector("[data-plot=ahead]").dataset.drawn === "yes"`)
	b.screen("offers", "/console/offers")
}
