package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// A power below zero is for what can give and may.
func TestCheckDispatch_Gives(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		site := h.Site(flex.FullScheduleMethod)
		consented := h.Site(flex.FullScheduleMethod)
		now := at("2026-01-14T18:10:00Z")
		h.write(func(tx *store.Tx) error { return tx.SetDischargeConsent(h.Context(), consented, now) })
		car := func(site flex.SiteID) flex.AssetID {
			id := h.Asset(site, flex.ElectricVehicle, 7400)
			h.Exec(`UPDATE asset SET discharge = $1 WHERE id = $2`, `{"power_w":5000}`, id.Bytes())
			return id
		}

		for name, c := range map[string]struct {
			asset flex.AssetID
			power flex.Watts
			want  string
		}{
			"a battery gives":          {h.Asset(site, flex.Battery, 5000), -3000, ""},
			"a charger draws":          {h.Asset(site, flex.Charger, 7400), 3000, ""},
			"a charger gives":          {h.Asset(site, flex.Charger, 7400), -3000, "(charger) has no discharge power"},
			"a car that cannot":        {h.Asset(site, flex.ElectricVehicle, 7400), -3000, "(electric vehicle) has no discharge power"},
			"a car without a consent":  {car(site), -3000, "has not consented"},
			"a car that may discharge": {car(consented), -3000, ""},
		} {
			order := store.Dispatch{
				Market: "other",
				Span:   flex.Span{From: now, To: now.Add(time.Hour)},
				Assets: []store.DispatchedAsset{{ID: c.asset, Power: c.power}},
			}

			err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return control.CheckDispatch(h.Context(), tx, &order) })
			if c.want == "" && err != nil || c.want != "" && (flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
