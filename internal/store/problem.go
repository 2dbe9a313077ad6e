package store

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/tariff"
)

// Problem is the planning problem that the inputs pose from an instant on, when so much of the
// need had been charged. It has no market prices, caps or ramp: who plans with them adds them, and
// settlement, which asks what would have been planned without the market, does not.
func (e *Effective) Problem(
	from time.Time,
	charged flex.WattHours,
) charge.Problem {
	p := charge.Problem{
		From:          from,
		ReadyBy:       e.ReadyBy,
		Need:          max(0, e.Need-charged),
		Power:         e.Power,
		MayChargePeak: e.MayChargePeak,
		Mode:          e.Mode,
		ChargeNow:     e.ChargeNow,
	}

	end := e.ReadyBy
	if e.ChargeNow.To.After(end) {
		end = e.ChargeNow.To
	}

	offPeak, known := tariff.OffPeak(e.Tariff, flex.Span{
		From: from,
		To:   end,
	})

	p.OffPeak, p.AllOffPeak = offPeak, !known

	return p
}
