package control_test

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/check"
	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/store/storetest"
)

// herdPrices are the GB system prices from 18:00 on 14 to 07:00 on 15 November 2018, in £/MWh, and those of the
// night after.
var herdPrices = [2][]float64{
	{47.25, 48.65, 48.45, 48.65, 74.99, 74.99, 48.45, 75, 48, 48, 51.82, 50.64, 72, 76, 76, 76, 76, 71, 48.06, 48.06, 73.95, 76, 76, 78, 81.35, 84},
	{49.5, 93, 99, 99, 98, 76.5, 49.6, 49.15, 49.11, 49.1, 76, 46.05, 45.67, 49.11, 74, 49.11, 70.01, 49.2, 49.1, 49.1, 49.11, 48.51, 7.9, 46.15, 49.11, 49.1},
}

// BenchmarkHerd plans a fleet of one tariff twice, for the night and again in the midst of it at other prices,
// and measures from the profiles that are sent, and nothing else, by how much the planned power moves in a
// minute: of the whole fleet and of the one of 14 regions that moves most. It does so with the ramp, of 50 MW
// for 100,000 cars, and without.
func BenchmarkHerd(b *testing.B) {
	n := *waveSize
	most := control.DefaultRamp * flex.Watts(n) / 100_000
	for name, limit := range map[string]flex.Watts{"with": most, "without": 0} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				h := open(b, storetest.SQLite(b), "2026-01-10T18:00:00Z")
				h.plugHerd(n, limit)
				h.publish("2026-01-10T18:00:00Z", herdPrices[0]...)
				if got := h.replan(); got != n {
					b.Fatalf("%d of %d planned", got, n)
				}

				sent := h.profiles(2)
				b.ReportMetric(pence(sent, herdPrices[0]), "p/kWh")

				h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL`)
				h.goTo("2026-01-11T01:10:00Z")
				h.publish("2026-01-10T18:00:00Z", herdPrices[1]...)
				b.ReportMetric(float64(h.replan()), "changed")
				sent = append(sent, h.profiles(3)...)

				all := check.LargestChange(sent)
				b.ReportMetric(all.Power.KW()/1000, "MW/min")
				b.ReportMetric(regions(sent).KW()/1000, "MW/min-region")
				if limit > 0 && all.Power > limit {
					b.Errorf("moves by %d W in the minute to %v, under a ramp of %d", all.Power, all.At, limit)
				}
			}
		})
	}
}

// regions is the largest change of the region that moves most.
func regions(sent []check.Sent) (most flex.Watts) {
	var by [14][]check.Sent
	for _, s := range sent {
		r := int(s.Asset[15]) % len(by)
		by[r] = append(by[r], s)
	}

	for _, s := range by {
		most = max(most, check.LargestChange(s).Power)
	}

	return most
}

// pence is what a kilowatt-hour of what was sent costs at prices from 18:00 on.
func pence(sent []check.Sent, prices []float64) float64 {
	first := at("2026-01-10T18:00:00Z")
	cost, energy := 0.0, 0.0
	for _, s := range sent {
		for _, step := range s.Steps {
			if step.Limit == 0 {
				continue
			}

			for i, price := range prices {
				from := first.Add(time.Duration(i) * flex.HalfHour)
				kwh := step.Meet(flex.Span{From: from, To: from.Add(flex.HalfHour)}).Len().Hours() * s.Power.KW()
				energy += kwh
				cost += kwh * price / 10
			}
		}
	}

	return cost / energy
}

// plugHerd plugs n cars of one tariff in, each with a schedule in which it does not charge yet, spread as the ramp
// has it.
func (h *fixture) plugHerd(n int, limit flex.Watts) {
	h.Helper()
	h.service.Ramp = limit
	id := func(kind byte, i int) [16]byte {
		return flex.MakeID[struct{}](time.UnixMilli(int64(kind)<<32), [10]byte{6: byte(i >> 24), 7: byte(i >> 16), 8: byte(i >> 8), 9: byte(i)})
	}

	bytes := func(kind byte, i int) []byte {
		v := id(kind, i)
		return v[:]
	}

	var f ramp.Fleet
	for range n {
		f.Add(7400)
	}

	spread, kept := ramp.Spread(f, limit)
	if !kept {
		h.Fatalf("%d W a minute are too few for %d cars", limit, n)
	}

	now, ready := h.micro.Load(), at("2026-01-11T07:00:00Z").UnixMicro()
	window := (ready - now) / 1_000_000
	h.Rows("asset", strings.Fields("id org_id site_id external_id type power_w created_at"), n, func(i int) []any {
		return []any{bytes(1, i), h.Org.Bytes(), h.site.Bytes(), fmt.Sprint("ev", i), "charger", 7400, 0}
	})

	h.Rows("session", strings.Fields("id org_id asset_id site_id number plugged_in_at ready_by generation event_id"), n, func(i int) []any {
		return []any{bytes(2, i), h.Org.Bytes(), bytes(1, i), h.site.Bytes(), 1, now, ready, 1, bytes(3, i)}
	})

	h.Rows("schedule", strings.Fields(`event_id org_id asset_id session_id generation cause made_at from_at to_at steps ready_by
		need_wh delivered_wh count_from power_w running may_charge_peak mode off_peak zone tariff_type origins value ramp`), n, func(i int) []any {
		var spreadOver any
		if spread > 0 {
			spreadOver = fmt.Sprintf(`{"offset_s":%d,"spread_s":%d}`, int(ramp.Offset(id(1, i), spread).Seconds()), int(spread.Seconds()))
		}

		return []any{bytes(3, i), h.Org.Bytes(), bytes(1, i), bytes(2, i), 1, "plug-in", now, now, ready, fmt.Sprintf("%dx0", window), ready,
			8000 + i%13*1000, 0, now, 7400, false, false, "minimise_charging_time", "00:30-05:30", "Europe/London", "dual_rate", "event asset event", 0, spreadOver}
	})

	h.Rows("outbox", strings.Fields("subject org_id endpoint kind asset_id event_id generation queued_at expires_at accepted"), n, func(i int) []any {
		return []any{bytes(1, i), h.Org.Bytes(), "schedule", "schedule", bytes(1, i), bytes(3, i), 1, now, ready, 1}
	})
}

// profiles are the charging profiles of a generation, as a charger reads them, taken when they were made.
func (h *fixture) profiles(generation int) (sent []check.Sent) {
	h.Helper()
	for _, row := range h.Strings(`SELECT hex(asset_id) || ' ' || made_at || ' ' || from_at || ' ' || steps FROM schedule WHERE generation = $1`, generation) {
		field := strings.Fields(row)
		made, _ := strconv.ParseInt(field[1], 10, 64)
		from, _ := strconv.ParseInt(field[2], 10, 64)
		s := check.Sent{At: time.UnixMicro(made), Power: 7400}
		if _, err := hex.Decode(s.Asset[:], []byte(field[0])); err != nil {
			h.Fatal(row, err)
		}

		begin := time.UnixMicro(from).UTC()
		var steps []flex.Step
		for _, text := range field[3:] {
			var seconds, limit int
			if _, err := fmt.Sscanf(text, "%dx%d", &seconds, &limit); err != nil {
				h.Fatal(row, err)
			}

			end := begin.Add(time.Duration(seconds) * time.Second)
			steps = append(steps, flex.Step{Span: flex.Span{From: begin, To: end}, Limit: flex.Watts(limit)})
			begin = end
		}

		p, err := ocpp.New(flex.AssetID(s.Asset), steps)
		if err == nil {
			p, err = ocpp.Parse(p.Message(1, ocpp.Form{}))
		}
		if err != nil {
			h.Fatal(err)
		}

		s.Steps = p.Steps
		sent = append(sent, s)
	}

	return sent
}
