package store

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/tariff"
)

// Problem returns the planning problem of the inputs from an instant on, with the given part of the need
// charged already. It has no market prices, caps or ramp: control adds them to plan with them, and
// settlement does not, as it computes the plan without the market.
func (e *PlanInputs) Problem(
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
