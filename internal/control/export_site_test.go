package control_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// setSupply has the fixture's site carry something else from now on, as a change of the site does.
func (h *fixture) setSupply(carries, export flex.Watts) {
	h.Helper()
	h.write(func(tx *store.Tx) error {
		supply := flex.Supply{Import: carries, Export: export, Set: true}
		if err := tx.SetSupply(h.Context(), h.site, supply, tx.Now()); err != nil {
			return err
		}

		return tx.MarkBatteries(h.Context(), h.site)
	})
}

// sentFor is how many dispatches of no power, and how many of some, there are that begin at an instant or later in its half-hour.
func (h *fixture) sentFor(when string) (none, some int) {
	h.Helper()
	const count = `SELECT count(*) FROM dispatch d JOIN dispatch_asset a ON a.event_id = d.event_id WHERE d.from_at >= $1 AND d.from_at < $2 AND a.power_w `
	from, to := at(when).UnixMicro(), at(when).Add(flex.HalfHour).UnixMicro()

	return h.Count(count+`= 0`, from, to), h.Count(count+`<> 0`, from, to)
}

// TestExportLimits_SiteLowered has a half-hour in which a battery gives be taken back once, where the site's own export limit is lowered
// after it was dispatched, and not where the limit only changed.
func TestExportLimits_SiteLowered(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		h.listen()
		h.setSupply(20_000, 5000)
		prices := slices.Repeat([]float64{100}, 4*48)
		prices[4], prices[5] = 500, 500
		h.publish("2026-01-14T18:00:00Z", prices...)
		id := h.battery()
		h.tariff(id, flex.Tariff{Type: flex.DynamicTariff})
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", 100)
		h.runBatteries()

		const when = "2026-01-14T20:00:00Z"
		h.goTo("2026-01-14T19:10:00Z")
		h.runBatteries()
		if none, some := h.sentFor(when); none != 0 || some != 1 {
			t.Fatalf("%d dispatches of no power and %d of some", none, some)
		}

		for _, c := range []struct {
			export flex.Watts
			none   int
		}{{4000, 0}, {1000, 1}, {500, 1}} {
			for range 2 {
				h.wait(time.Minute)
				h.setSupply(20_000, c.export)
				h.runBatteries()
				if none, _ := h.sentFor(when); none != c.none {
					t.Errorf("%d dispatches of no power under %d W, not %d", none, c.export, c.none)
				}
			}

			if gives := h.giving(when, id); gives != 1-c.none {
				t.Errorf("%d give under %d W", gives, c.export)
			}
		}
	})
}

// TestExportLimits_FuseLowered has a half-hour in which a battery charges be taken back where the main fuse is lowered below its power.
func TestExportLimits_FuseLowered(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		h.listen()
		h.setSupply(20_000, 5000)
		id := h.battery()
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T22:35:00Z", "2026-01-14T22:35:00Z", 20)
		h.runBatteries()

		const when = "2026-01-15T00:30:00Z"
		h.goTo("2026-01-15T00:10:00Z")
		h.runBatteries()
		if none, some := h.sentFor(when); none != 0 || some != 1 || modeAt(h.modes(id), when) != battery.ModeCharge {
			t.Fatalf("%d dispatches of no power and %d of some", none, some)
		}

		h.wait(time.Minute)
		h.setSupply(2000, 2000)
		for range 2 {
			h.runBatteries()
			if none, _ := h.sentFor(when); none != 1 || modeAt(h.modes(id), when) != battery.ModeLock {
				t.Errorf("%d dispatches of no power, and it is to %v", none, modeAt(h.modes(id), when))
			}
			h.wait(time.Minute)
		}
	})
}
