package operations

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// readBatteries adds by how much batteries could draw less or more in each half-hour alone than they are expected to, where
// somebody listens for dispatches. What each is expected to draw is among draws.
func (f *Outlook) readBatteries(
	ctx context.Context,
	tx *store.Tx,
	draws []store.BatteryDraw,
) error {
	_, listens, err := tx.EnabledEndpoint(ctx, flex.DispatchEndpoint)
	if err != nil || !listens {
		return err
	}

	found, err := tx.EnvelopeBatteries(ctx, flex.Scope{})
	if err != nil {
		return err
	}

	expected := map[flex.AssetID]*perHalfHour{}
	for _, d := range draws {
		own := expected[d.Asset]
		if own == nil {
			own = new(perHalfHour)
			expected[d.Asset] = own
		}
		f.spread(own, d.From.Unix(), d.To.Unix(), int64(d.Power))
	}

	for i := range found {
		own := expected[found[i].AssetID]
		if own == nil {
			own = new(perHalfHour)
		}
		f.bandBattery(&found[i], own)
	}

	return nil
}

// bandBattery adds by how much a battery could draw less or more in each half-hour alone.
func (f *Outlook) bandBattery(b *store.EnvelopeBattery, own *perHalfHour) {
	if b.Power <= 0 || b.Capacity <= 0 {
		return
	}

	edges := f.edges
	edges[0] = f.start
	bounds := b.Storage(edges[:]).Bounds()

	for i := range own {
		least, most := bounds.Window(i, i+1)
		f.batteriesLess[i] += max(0, own[i]-int64(least))
		f.batteriesMore[i] += max(0, int64(most)-own[i])
	}
}

// joinBatteries adds what another organisation's batteries do, and could.
func (f *Outlook) joinBatteries(o *Outlook) {
	for i := range f.batteries {
		f.batteries[i] += o.batteries[i]
		f.batteriesLess[i] += o.batteriesLess[i]
		f.batteriesMore[i] += o.batteriesMore[i]
	}
}
