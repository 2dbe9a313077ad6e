package control_test

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

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
// minute: of the whole fleet and of the one of 14 groups that moves most. It does so without a ramp, with one of 50 MW
// for 100,000 cars, with one of 3 MW for each group beside, and where each group has a cap: one with room for all, and
// one of two thirds of its power.
func BenchmarkHerd(b *testing.B) {
	n := *waveSize
	share := func(kw float64) flex.Watts { return flex.FromKW(kw * float64(n) / 100_000) }
	both := flex.Ramp{All: share(50_000), Group: max(share(3000), 400_000)}

	for _, c := range []struct {
		name  string
		limit flex.Ramp
		cap   float64 // of a group, as a part of its power; 0 for none
	}{
		{"without", flex.Ramp{}, 0},
		{"with", flex.Ramp{All: both.All}, 0},
		{"groups", both, 0},
		{"caps-without", flex.Ramp{}, 1},
		{"caps", both, 1},
		{"caps-that-bind-without", flex.Ramp{}, 0.67},
		{"caps-that-bind", both, 0.67},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				h := open(b, storetest.SQLite(b), "2026-01-10T18:00:00Z")
				sites := h.plugHerd(n, c.limit)
				if c.cap > 0 {
					h.capHerd(n, sites, c.cap)
				}

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

				all, group := check.LargestChange(sent), regions(sent)
				b.ReportMetric(all.Power.KW()/1000, "MW/min")
				b.ReportMetric(group.KW()/1000, "MW/min-group")
				if c.limit.All > 0 && all.Power > c.limit.All {
					b.Errorf("moves by %d W in the minute to %v, under a ramp of %d", all.Power, all.At, c.limit.All)
				}
				if c.limit.Group > 0 && group > c.limit.Group {
					b.Errorf("a group moves by %d W in a minute, under a ramp of %d", group, c.limit.Group)
				}
			}
		})
	}
}

// capHerd gives the site of each of the 14 groups a cap of a part of its power.
func (h *fixture) capHerd(n int, sites []flex.SiteID, part float64) {
	h.Helper()
	var caps flex.Caps
	for i, site := range sites {
		caps.Groups = append(caps.Groups, flex.CapGroup{Name: fmt.Sprint("group ", i), Cap: kw(float64(n) * 7.4 / 14 * part), Sites: []flex.SiteID{site}})
	}
	h.setCaps(caps)
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
// has it. It returns the sites of the 14 groups.
func (h *fixture) plugHerd(n int, limit flex.Ramp) (sites []flex.SiteID) {
	h.Helper()
	h.service.Ramp = limit
	for range 14 {
		sites = append(sites, h.Site(flex.FullScheduleMethod))
	}
	id := func(kind byte, i int) [16]byte {
		return flex.MakeID[struct{}](time.UnixMilli(int64(kind)<<32), [10]byte{6: byte(i >> 24), 7: byte(i >> 16), 8: byte(i >> 8), 9: byte(i)})
	}

	bytes := func(kind byte, i int) []byte {
		v := id(kind, i)
		return v[:]
	}

	var f, group ramp.Fleet
	for i := range n {
		f.Add(7400)
		if i%14 == 0 {
			group.Add(7400)
		}
	}

	spread, kept := ramp.Spread(f, limit.All)
	longer, also := ramp.Spread(group, limit.Group)
	spread = max(spread, longer)
	if !kept || !also {
		h.Fatalf("%d W a minute are too few for %d cars", limit, n)
	}

	now, ready := h.micro.Load(), at("2026-01-11T07:00:00Z").UnixMicro()
	window := (ready - now) / 1_000_000
	h.Rows("asset", strings.Fields("id org_id site_id external_id type power_w created_at"), n, func(i int) []any {
		return []any{bytes(1, i), h.Org.Bytes(), h.siteOf(sites, id(1, i)), fmt.Sprint("ev", i), "charger", 7400, 0}
	})

	h.Rows("session", strings.Fields("id org_id asset_id site_id number plugged_in_at ready_by generation event_id"), n, func(i int) []any {
		return []any{bytes(2, i), h.Org.Bytes(), bytes(1, i), h.siteOf(sites, id(1, i)), 1, now, ready, 1, bytes(3, i)}
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

	return sites
}

// siteOf is the site of an asset's group.
func (h *fixture) siteOf(sites []flex.SiteID, asset [16]byte) any {
	return sites[int(asset[15])%len(sites)].Bytes()
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
