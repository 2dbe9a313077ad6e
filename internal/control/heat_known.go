package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/rate"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// A building's loss has a high certainty if its relative error is at most goodLoss, and a
	// medium one up to fairLoss.
	goodLoss, fairLoss = 0.1, 0.25
	// What is used from a tank has a high certainty from goodDays of readings on, and a medium
	// one from fairDays.
	goodDays, fairDays = 7, 3
)

// AssetHeat is the thermal model of a heat pump's building or of a hot-water tank.
type AssetHeat struct {
	AssetID   flex.AssetID
	Type      flex.AssetType
	Days      int    // of readings that it was learned from; 0 if assumed
	Since     string // the first of them
	Certainty rate.Certainty
	// earlier readings are not used; zero if never reset
	ResetAt time.Time
	// of a heat pump's building, learned or assumed
	Loss     float64 // W for each degree of difference to the outdoors
	Capacity float64 // Wh for each degree
	Gain     float64 // W that people and the sun give
	Miss     float64 // error of a forecast of three hours, in degrees; 0 if assumed
	// UsedInDay is what is used from a tank and lost in a day, and Spare the most that is
	// stored in reserve.
	UsedInDay flex.WattHours
	Spare     flex.WattHours
}

// Heat returns the thermal model of an asset. An asset that does not heat, or of another
// organisation, is NotFound.
func (s *Service) Heat(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) (AssetHeat, error) {
	var known AssetHeat
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, asset)
		if err != nil {
			return err
		}

		if !c.Asset.Type.Heats() {
			return flex.Fail(
				flex.NotFound,
				"asset %v is a %s, of which nothing is learned of heat",
				asset,
				c.Asset.Type,
			)
		}

		t, err := tankOf(ctx, tx, c)
		if err == nil {
			known = t.heat()
		}

		return err
	})

	return known, err
}

// heat returns the model that the heater is planned with.
func (t *heatedTank) heat() AssetHeat {
	known := AssetHeat{
		AssetID: t.asset.ID,
		Type:    t.asset.Type,
		ResetAt: t.model.ResetAt,
	}

	good, fair := false, false
	if t.asset.Type == flex.HeatPump {
		b := assumedBuilding(t.power)
		if rooms := t.model.Rooms; rooms != nil {
			b = *rooms
			known.Days, known.Since = rooms.Days, rooms.Since
		}

		known.Loss, known.Capacity = b.Loss, b.Capacity
		known.Gain, known.Miss = b.Gain, b.Miss
		off := b.Error
		good, fair = off <= goodLoss, off <= fairLoss
	} else {
		if water := t.model.Water; water != nil {
			known.Days, known.Since = water.Days, water.Since
		}

		used, spare := t.dailyUse()
		known.UsedInDay, known.Spare = flex.WattHours(used), flex.WattHours(spare)
		good, fair = known.Days >= goodDays, known.Days >= fairDays
	}

	known.Certainty = certainty(known.Days > 0, good, fair)

	return known
}

// certainty is the certainty of a learned value.
func certainty(learned, good, fair bool) rate.Certainty {
	switch {
	case !learned:
		return rate.None
	case good:
		return rate.High
	case fair:
		return rate.Medium
	}

	return rate.Low
}

// dailyUse returns what is used from the tank and lost in a day, and the most that is stored
// in reserve, in Wh.
func (t *heatedTank) dailyUse() (used, spare int) {
	known := t.pattern()
	for slot := range known.Used {
		used += known.Used[slot]
		spare = max(spare, known.Spare[slot])
	}

	return used, min(spare, int(maxSparePart*float64(t.capacity)))
}

// Sentence describes the model, with its origin.
func (k *AssetHeat) Sentence() string {
	text := fmt.Sprintf(
		"planned with %.1f kWh drawn and lost in a day, and up to %.1f kWh kept for more",
		k.UsedInDay.KWh(),
		k.Spare.KWh(),
	)
	if k.Type == flex.HeatPump {
		text = fmt.Sprintf(
			"planned with a building that loses %.0f W and keeps %.1f kWh for each degree, of which people and the sun make up for %.0f W",
			k.Loss,
			k.Capacity/1000,
			k.Gain,
		)
	}

	if k.Days == 0 {
		return text + ", assumed: nothing was learned yet"
	}

	text += fmt.Sprintf(
		", learned from %d days of readings since %s, certainty %s",
		k.Days,
		k.Since,
		k.Certainty,
	)
	if k.Type == flex.HeatPump {
		text += fmt.Sprintf("; a forecast of three hours was off by %.1f degrees", k.Miss)
	}

	return text
}
