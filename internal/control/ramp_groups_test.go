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
	"flexd/internal/flex"
)

// deliveryLog is what endpoints accepted, and when, as the delivery log has it: nothing else is read.
func (h *fixture) deliveryLog() (sent []check.Sent) {
	h.Helper()
	asset := `replace(CAST(d.asset_id AS TEXT), '-', '')`
	if h.db.Engine() == "sqlite" {
		asset = `hex(d.asset_id)`
	}

	for _, row := range h.Strings(`SELECT ` + asset + ` || ' ' || d.at || ' ' || c.from_at || ' ' || c.steps
		FROM delivery d JOIN schedule c ON c.event_id = d.event_id WHERE d.state = 'accepted' ORDER BY d.at`) {
		field := strings.Fields(row)
		accepted, _ := strconv.ParseInt(field[1], 10, 64)
		from, _ := strconv.ParseInt(field[2], 10, 64)
		s := check.Sent{At: time.UnixMicro(accepted).UTC(), Power: 7400}
		if _, err := hex.Decode(s.Asset[:], []byte(field[0])); err != nil {
			h.Fatal(row, err)
		}

		begin := time.UnixMicro(from).UTC()
		for _, text := range field[3:] {
			var seconds, limit int
			if _, err := fmt.Sscanf(text, "%dx%d", &seconds, &limit); err != nil {
				h.Fatal(row, err)
			}

			end := begin.Add(time.Duration(seconds) * time.Second)
			s.Steps = append(s.Steps, flex.Step{Span: flex.Span{From: begin, To: end}, Limit: flex.Watts(limit)})
			begin = end
		}

		sent = append(sent, s)
	}

	return sent
}

// acceptAll has the endpoint accept, now, whatever was not accepted yet.
func (h *fixture) acceptAll() {
	h.Helper()
	h.Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)
		SELECT org_id, event_id, 'schedule', 'schedule', asset_id, generation, queued_at, 'accepted', 1, $1, 0, 200, '', ''
		FROM outbox WHERE kind = 'schedule' AND COALESCE(accepted, 0) < generation`, h.micro.Load())
	h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL WHERE kind = 'schedule'`)
}

// twoGroups is a night of 60 cars of one tariff, each at a site of its own, 40 of them in a group and 20 in another. It
// returns the sites of each.
func (h *fixture) twoGroups() (sites [2][]flex.SiteID, of map[[16]byte]int, passes func()) {
	h.Helper()
	assets, all := h.chargers(59)
	of = map[[16]byte]int{}
	for i, site := range all {
		k := min(1, i/40)
		sites[k] = append(sites[k], site)
		of[assets[i]] = k
	}

	return sites, of, func() {
		h.Helper()
		if _, err := h.service.SetRamp(h.Context()); err != nil {
			h.Fatal(err)
		}

		h.publish("2026-01-10T18:00:00Z", night(13, 14, 15, 16)...) // 00:30 to 02:30
		for _, asset := range assets {
			h.at(asset).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(12, flex.Minimise)})
		}
		h.acceptAll()

		h.wait(control.MarketInterval)
		h.replan()
		h.acceptAll()

		h.goTo("2026-01-11T01:10:00Z")
		h.publish("2026-01-10T18:00:00Z", night(20, 21, 22)...) // 04:00 to 05:30
		if n := h.replan(); n < 20 {
			h.Fatalf("%d of 60 schedules changed", n)
		}
		h.acceptAll()
	}
}

// exact fails the test unless each car's schedule is explained to the second, and meets its need.
func (h *fixture) exact(assets map[[16]byte]int) {
	h.Helper()
	for asset := range assets {
		x, err := h.service.Explanation(h.Context(), h.Org, flex.AssetID(asset))
		if err != nil {
			h.Fatal(err)
		}
		if x.Plan.Shortfall > 0 || !x.Exact {
			h.Errorf("%d Wh are missing; worked out alike: %v\n%s", x.Plan.Shortfall, x.Exact, x.Prose())
		}
	}
}

// TestRamp_Groups has each GSP group and each constraint group move by at most 100 kW a minute, by the delivery log
// alone: at plug-in, at a re-plan of all in the midst of their charge, and at the end. Without the setting both move
// at once.
func TestRamp_Groups(t *testing.T) {
	const most = flex.Watts(100_000)
	limits := func(north, south float64) func(h *fixture, sites [2][]flex.SiteID) {
		return func(h *fixture, sites [2][]flex.SiteID) {
			h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "north", Cap: kw(north), Sites: sites[0]}, {Name: "south", Cap: kw(south), Sites: sites[1]}}})
		}
	}

	for _, c := range []struct {
		name  string
		group func(h *fixture, sites [2][]flex.SiteID)
		caps  [2]float64 // of the groups, in kW; 0 for none
	}{
		{"GSP groups", func(h *fixture, sites [2][]flex.SiteID) {
			for k, region := range []string{"_A", "_C"} {
				for i, site := range sites[k] {
					mpan := fmt.Sprintf("12%011d", k*1000+i)
					h.Exec(`INSERT INTO meter (mpan, import, address, postcode, energised, half_hourly, domestic, gsp_group) VALUES ($1, TRUE, '', '', TRUE, TRUE, TRUE, $2)`, mpan, region)

					h.Exec(`UPDATE site SET mpan = $1 WHERE id = $2`, mpan, site.Bytes())
				}
			}
		}, [2]float64{}},
		{"constraint groups with room for all", limits(1000, 1000), [2]float64{1000, 1000}},
		{"constraint groups that bind", limits(200, 120), [2]float64{200, 120}},
	} {
		for _, limit := range []flex.Watts{most, 0} {
			t.Run(fmt.Sprintf("%s, %d W", c.name, limit), func(t *testing.T) {
				test := func(h *fixture) {
					sites, of, passes := h.twoGroups()
					c.group(h, sites)
					h.service.Ramp.Group = limit
					passes()

					var parts [2][]check.Sent
					for _, s := range h.deliveryLog() {
						parts[of[s.Asset]] = append(parts[of[s.Asset]], s)
					}

					h.exact(of)
					var assets [2][]flex.AssetID
					for asset, k := range of {
						assets[k] = append(assets[k], flex.AssetID(asset))
					}

					for k, part := range parts {
						got := check.LargestChange(part)
						if most := c.caps[k]; most > 0 && h.drawn(assets[k]...) > flex.FromKW(most) {
							t.Errorf("group %d draws %d W under a cap of %v kW", k, h.drawn(assets[k]...), most)
						}
						t.Logf("group %d: %d schedules, %d W in the minute to %v", k, len(part), got.Power, got.At)
						if limit > 0 && got.Power > limit || limit == 0 && got.Power <= most {
							t.Errorf("group %d moves by %d W in the minute to %v", k, got.Power, got.At)
						}
					}
				}

				if limit > 0 {
					eachOf(t, "2026-01-10T18:00:00Z", test)
					return
				}
				one(t, "2026-01-10T18:00:00Z", test)
			})
		}
	}
}
