package delivery_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestPush_RegisteredAgain has a charger deleted while a push to it waits, and registered
// again under the same external id. What waits is still sent, unless the new asset has a
// schedule: the older profile is not to replace that in the charger.
func TestPush_RegisteredAgain(t *testing.T) {
	for name, planned := range map[string]bool{"without a schedule": false, "with a schedule": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(h *fixture) {
				e := h.endpoint(nil)
				former := h.chargers(1)[0]
				old := h.plan(24*time.Hour, former)[0]
				h.write(func(ctx context.Context, tx *store.Tx) error {
					if err := tx.LockAsset(ctx, former); err != nil {
						return err
					}

					c, err := tx.PlanningState(ctx, former)
					if err != nil {
						return err
					}
					if err := tx.CloseSession(ctx, &c.Session); err != nil {
						return err
					}
					return tx.DropAsset(ctx, former)
				})

				again := h.chargers(1)[0]
				h.Exec(`UPDATE asset SET external_id = $1 WHERE id = $2`, "x"+former.String(), again.Bytes())
				want, state := old, flex.DeliveryAccepted
				if planned {
					want, state = h.plan(24*time.Hour, again)[0], flex.DeliveryExpired
				}

				defer h.work(h.service)()
				h.settle()

				if got := e.all(); len(got) != 1 || got[0].id != want.String() {
					h.Errorf("%d pushes came, not one of %v", len(got), want)
				}
				if s := h.state(old); s != state {
					h.Errorf("the one that waited is %s, not %s", s, state)
				}
			})
		})
	}
}
