package sim

import (
	"context"
	"fmt"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

// Visit is one car's stay at its charger: when it comes and goes and what its user asks for.
type Visit struct {
	Name          string
	Power         flex.Watts // of charger and car
	Arrive        time.Time
	Leave         time.Time
	NeedKWh       float64
	ReadyBy       string // wall time, HH:MM:SS
	OffPeak       string
	Mode          flex.ChargingMode
	MayChargePeak bool
	// asked for a while after arriving; zero is never
	ChargeNow time.Duration
	// the car's own schedule, in a home of limited_pause; empty for the other proposition
	Own flex.Span
	// in which the charger gives nothing, whatever it is sent
	Trips flex.Span
	Case  string // what it is an example of, in two words
	Why   string // what there is to see, for the reader

	Site  client.SiteID
	Asset client.AssetID
	*Charger

	came    bool
	went    bool
	asked   bool
	tripped bool
	stayed  Car // what it had drawn when it left
}

// Evening plays visits and home batteries against a flexd: it tells the events when they are
// due, lets chargers and batteries run, and reports their readings.
type Evening struct {
	Client    *client.Client
	Visits    []*Visit
	Batteries []*Battery
	Price     func(flex.Period) flex.Price
	Say       func(at time.Time, name, text string) // called with what happens
}

// consentedFor is how long before a home's first evening its user consented to the use of the
// boundary meter: longer than a baseline looks back.
const consentedFor = 90 * 24 * time.Hour

// chargeNowAfter is how long after arriving a user asks to charge at once.
const chargeNowAfter = 40 * time.Minute

// Onboard registers the site of every visit and of every battery with the MPANs given, one
// each: the first in order at the first home.
func (e *Evening) Onboard(
	ctx context.Context,
	now time.Time,
	mpans []string,
) error {
	for i, b := range e.Batteries {
		n := len(e.Visits) + i
		err := b.onboard(
			ctx,
			e.Client,
			mpans[n],
			fmt.Sprintf("%d High Street", n+1),
			now,
		)

		if err != nil {
			return err
		}
	}

	for i, v := range e.Visits {
		err := v.onboard(
			ctx,
			e.Client,
			mpans[i],
			fmt.Sprintf("%d High Street", i+1),
		)

		if err != nil {
			return err
		}
	}

	return nil
}

// onboard registers the visit's site and charger. A car that keeps a schedule of its own is at a
// site whose proposition is to pause it.
func (v *Visit) onboard(
	ctx context.Context,
	c *client.Client,
	mpan, address string,
) error {
	site := client.SiteRequest{
		MPAN:                       mpan,
		Postcode:                   "SW1A 1AA",
		StreetAddress:              address,
		Email:                      v.Name + "@example.com",
		GaveBoundaryMeterConsentAt: client.At(v.Arrive.Add(-consentedFor)),
	}

	asset := client.OnboardingAssetRequest{
		ExternalID: v.Name,
		Type:       client.AssetCharger,
		Properties: &client.AssetProperties{PowerKW: new(v.Power.KW())},
	}

	proposition := flex.FullAssetSchedule
	if !v.Own.Empty() {
		proposition = flex.LimitedPause
	}

	r, err := c.Onboard(ctx, client.OnboardRequest{
		Site:        site,
		Assets:      []client.OnboardingAssetRequest{asset},
		Proposition: client.Proposition(proposition),
	})
	if err != nil {
		return fmt.Errorf("onboard %s: %w", v.Name, err)
	}

	v.Site = r.Site.SiteID
	v.Asset = r.Assets[0].AssetID
	v.Charger = &Charger{
		ExternalID: v.Name,
		Power:      v.Power,
		Outage:     v.Trips,
	}

	return nil
}

// Step plays everything up to the instant.
func (e *Evening) Step(ctx context.Context, now time.Time) error {
	for _, v := range e.Visits {
		if v.came {
			v.RunTo(now, e.Price)
		}

		if err := e.act(ctx, v, now); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
	}

	for _, b := range e.Batteries {
		if err := b.step(ctx, e, now); err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
	}

	return e.report(ctx, now)
}

// act plays the first thing of a visit that is due and was not played yet.
func (e *Evening) act(
	ctx context.Context,
	v *Visit,
	now time.Time,
) error {
	switch {
	case !v.came && !now.Before(v.Arrive):
		v.came = true
		return e.arrive(ctx, v, now)

	case v.ChargeNow > 0 && !v.asked && !now.Before(v.Arrive.Add(chargeNowAfter)):
		v.asked = true
		return e.chargeNow(ctx, v, now)

	case !v.tripped && v.Trips.Contains(now):
		v.tripped = true
		e.Say(
			now,
			v.Name,
			"its charger trips: no power until "+clock(v.Trips.To),
		)

		return nil

	case v.came && !v.went && !now.Before(v.Leave):
		v.went = true
		return e.leave(ctx, v, now)
	}

	return nil
}

func (e *Evening) chargeNow(
	ctx context.Context,
	v *Visit,
	now time.Time,
) error {
	end := now.Add(v.ChargeNow)
	e.Say(now, v.Name, "asks to charge at once, until "+clock(end))
	return e.Client.ChargeNow(
		ctx,
		v.Asset,
		client.ChargeNowEventRequest{EndAt: client.At(end)},
	)
}

func (e *Evening) leave(
	ctx context.Context,
	v *Visit,
	now time.Time,
) error {
	v.stayed = *v.Car()
	v.Plug(nil, now)
	e.Say(
		now,
		v.Name,
		fmt.Sprintf(
			"drives off with %.1f kWh more than it came with",
			v.stayed.Got/1000,
		),
	)

	return e.Client.PlugOut(ctx, v.Asset)
}

// clock is an instant as a clock in London shows it.
func clock(at time.Time) string { return at.In(flex.London).Format("15:04") }

func (e *Evening) arrive(
	ctx context.Context,
	v *Visit,
	now time.Time,
) error {
	v.Plug(&Car{
		Name: v.Name,
		Rate: v.Power,
		Room: 80_000,
	}, now)

	if !v.Own.Empty() {
		return e.pause(ctx, v, now)
	}

	e.Say(
		now,
		v.Name,
		fmt.Sprintf(
			"plugs in, wants %g kWh by %s. %s: %s",
			v.NeedKWh,
			v.ReadyBy[:5],
			v.Case,
			v.Why,
		),
	)

	wall, err := flex.ParseWallTime(v.ReadyBy)
	if err != nil {
		return err
	}

	local := client.WallTime(wall)

	return e.Client.PlugIn(ctx, v.Asset, client.PlugInEventRequest{
		Intent: &client.Intent{
			EnergyRequiredKWh: v.NeedKWh,
			ReadyBy:           client.At(now),
			ReadyByLocalTime:  &local,
			MayChargePeak:     v.MayChargePeak,
			ChargingMode:      client.ChargingMode(v.Mode),
		},
		Vehicle: &client.Vehicle{ChargingRateKW: v.Power.KW()},
		Tariff: &client.Tariff{
			OffPeakTimes: v.OffPeak,
			Timezone:     "Europe/London",
			TariffType:   client.TariffDualRate,
		},
	})
}

// pause asks for a pause in the schedule that the car keeps, and has the charger follow what
// comes back.
func (e *Evening) pause(
	ctx context.Context,
	v *Visit,
	now time.Time,
) error {
	e.Say(
		now,
		v.Name,
		fmt.Sprintf(
			"plugs in, charges by itself %s-%s. %s: %s",
			clock(v.Own.From),
			clock(v.Own.To),
			v.Case,
			v.Why,
		),
	)

	got, err := e.Client.PlugInSchedule(
		ctx,
		v.Asset,
		client.PlugInScheduleEventRequest{
			ChargingSchedule: []client.ChargingScheduleBlock{{
				StartTimestamp: v.Own.From.Format(time.RFC3339),
				EndTimestamp:   v.Own.To.Format(time.RFC3339),
			}},
		},
	)

	if err != nil {
		return err
	}

	blocks, err := spansOf(got.ModifiedChargingSchedule)
	if err != nil {
		return err
	}

	e.sayPauses(v, blocks, now)
	profile, err := ocpp.New(
		flex.AssetID(v.Asset),
		stepsOf(blocks, flex.Span{
			From: now.Truncate(time.Second),
			To:   v.Leave,
		}),
	)

	if err != nil {
		return err
	}

	return v.Receive(profile.Message(1, ocpp.Form{}))
}

// spansOf reads the blocks of a charging schedule.
func spansOf(blocks []client.ChargingScheduleBlock) ([]flex.Span, error) {
	spans := make([]flex.Span, len(blocks))
	for i, block := range blocks {
		from, err := time.Parse(time.RFC3339, block.StartTimestamp)
		if err != nil {
			return nil, err
		}

		to, err := time.Parse(time.RFC3339, block.EndTimestamp)
		if err != nil {
			return nil, err
		}

		spans[i] = flex.Span{From: from, To: to}
	}

	return spans, nil
}

// sayPauses says in which spans the car would have charged by itself and is not to.
func (e *Evening) sayPauses(
	v *Visit,
	blocks []flex.Span,
	now time.Time,
) {
	say := func(from, to time.Time) {
		if from.Before(to) {
			e.Say(
				now,
				v.Name,
				fmt.Sprintf("◄ is to pause %s-%s", clock(from), clock(to)),
			)
		}
	}

	// up to here its own schedule and the answer were compared
	compared := v.Own.From
	for _, block := range blocks {
		say(compared, block.From)
		compared = block.To
	}
	say(compared, v.Own.To)
}

// stepsOf are the steps of a stay that charges in the blocks alone.
func stepsOf(blocks []flex.Span, stay flex.Span) []flex.Step {
	end := stay.From

	var steps []flex.Step
	for _, block := range blocks {
		idle := flex.Span{From: end, To: block.From}
		steps = append(steps, flex.Step{Span: idle}, flex.Step{
			Span:  block,
			Limit: flex.NoLimit,
		})

		end = block.To
	}

	return append(steps, flex.Step{Span: flex.Span{From: end, To: stay.To}})
}

// report sends the half-hours that have ended as readings.
func (e *Evening) report(ctx context.Context, now time.Time) error {
	var readings []client.ReadingDataPoint
	for _, v := range e.Visits {
		for _, m := range v.Meter(now) {
			readings = append(readings, client.ReadingDataPoint{
				AssetID:        v.Asset,
				StartTimestamp: client.At(m.Period.Start()),
				EndTimestamp:   client.At(m.Period.End()),
				Value:          m.Energy / 1000,
				Label:          client.LabelChargerEnergy,
			})
		}
	}

	if len(readings) == 0 {
		return nil
	}

	return e.post(ctx, readings)
}

func (e *Evening) post(
	ctx context.Context,
	readings []client.ReadingDataPoint,
) error {
	verdicts, err := e.Client.PostReadings(ctx, readings)
	if err != nil {
		return fmt.Errorf("post readings: %w", err)
	}

	for _, r := range verdicts.Responses {
		if !r.Accepted {
			return fmt.Errorf(
				"a reading of %s was not accepted: %s",
				r.AssetID,
				r.Error,
			)
		}
	}

	return nil
}

// Over reports whether every car has gone.
func (e *Evening) Over() bool {
	for _, v := range e.Visits {
		if !v.went {
			return false
		}
	}

	return true
}

// Ended returns when the last car leaves.
func (e *Evening) Ended() time.Time {
	var at time.Time
	for _, v := range e.Visits {
		if v.Leave.After(at) {
			at = v.Leave
		}
	}

	return at
}

// Took returns what the car drew during its stay and what that cost at market prices.
func (v *Visit) Took() Car { return v.stayed }

// AtOnce returns what the same energy would have cost at market prices, charged at full
// power from arrival.
func (v *Visit) AtOnce(price func(flex.Period) flex.Price) float64 {
	c := Charger{Power: v.Power}
	c.Plug(&Car{Rate: v.Power, Room: v.stayed.Got}, v.Arrive)
	c.RunTo(v.Leave, price)
	return c.car.Cost
}

// InWords tells when a profile lets a car charge, in London time.
func InWords(p ocpp.Profile) string {
	text := ""
	for _, s := range p.Steps {
		if s.Limit == 0 || s.Len() < time.Minute {
			continue
		}

		if text != "" {
			text += ", "
		}

		text += s.From.In(flex.London).Format("15:04") + "-" +
			s.To.In(flex.London).Format("15:04")
		if s.Limit != flex.NoLimit {
			text += fmt.Sprintf(" at %.1f kW", s.Limit.KW())
		}
	}

	if text == "" {
		return "no charging until " +
			p.Span().To.In(flex.London).Format("15:04")
	}

	return "charge " + text
}
