package street

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
	Arrive, Leave time.Time
	NeedKWh       float64
	ReadyBy       string // wall time, HH:MM:SS
	OffPeak       string
	Mode          flex.ChargingMode
	MayChargePeak bool
	ChargeNow     time.Duration // asked for a while after arriving; zero is never
	Why           string        // what there is to see, for the reader

	Site  client.SiteID
	Asset client.AssetID
	*Charger

	came, went, asked bool
	stayed            Car // what it had drawn when it left
}

// Evening plays visits against a flexd: it tells the events when they are due, lets the
// chargers run, and reports their readings.
type Evening struct {
	Client *client.Client
	Visits []*Visit
	Price  func(flex.Period) flex.Price
	Say    func(at time.Time, name, text string) // told what happens
}

// chargeNowAfter is how long after arriving a user asks to charge at once.
const chargeNowAfter = 40 * time.Minute

// Onboard registers every visit's site and charger with the MPANs given, one each.
func (e *Evening) Onboard(ctx context.Context, mpans []string) error {
	for i, v := range e.Visits {
		kw := v.Power.KW()
		r, err := e.Client.Onboard(ctx, client.OnboardRequest{
			Site: client.SiteRequest{
				MPAN: mpans[i], Postcode: "SW1A 1AA", StreetAddress: fmt.Sprintf("%d High Street", i+1),
				Email:                      v.Name + "@example.com",
				GaveBoundaryMeterConsentAt: client.At(v.Arrive.Add(-24 * time.Hour)),
			},
			Assets: []client.OnboardingAssetRequest{{
				ExternalID: v.Name, Type: flex.Charger, Properties: &client.AssetProperties{PowerKW: &kw},
			}},
			Proposition: flex.FullAssetSchedule,
		})
		if err != nil {
			return fmt.Errorf("onboard %s: %w", v.Name, err)
		}
		v.Site, v.Asset = r.Site.SiteID, r.Assets[0].AssetID
		v.Charger = &Charger{ExternalID: v.Name, Power: v.Power}
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
	return e.report(ctx, now)
}

func (e *Evening) act(ctx context.Context, v *Visit, now time.Time) error {
	switch {
	case !v.came && !now.Before(v.Arrive):
		v.came = true
		return e.arrive(ctx, v, now)
	case v.ChargeNow > 0 && !v.asked && !now.Before(v.Arrive.Add(chargeNowAfter)):
		v.asked = true
		end := now.Add(v.ChargeNow)
		e.Say(now, v.Name, fmt.Sprintf("asks to charge at once, until %s", end.In(flex.London).Format("15:04")))
		return e.Client.ChargeNow(ctx, v.Asset, client.ChargeNowEventRequest{EndAt: client.At(end)})
	case v.came && !v.went && !now.Before(v.Leave):
		v.went = true
		v.stayed = *v.Car()
		v.Plug(nil, now)
		e.Say(now, v.Name, fmt.Sprintf("drives off with %.1f kWh more than it came with", v.stayed.Got/1000))
		return e.Client.PlugOut(ctx, v.Asset)
	}
	return nil
}

func (e *Evening) arrive(ctx context.Context, v *Visit, now time.Time) error {
	e.Say(now, v.Name, fmt.Sprintf("plugs in and wants %g kWh by %s: %s", v.NeedKWh, v.ReadyBy[:5], v.Why))
	v.Plug(&Car{Name: v.Name, Rate: v.Power, Room: 80_000}, now)
	wall, err := flex.ParseWallTime(v.ReadyBy)
	if err != nil {
		return err
	}
	local := client.WallTime(wall)
	return e.Client.PlugIn(ctx, v.Asset, client.PlugInEventRequest{
		Intent: &client.Intent{
			EnergyRequiredKWh: v.NeedKWh, ReadyBy: client.At(now), ReadyByLocalTime: &local,
			MayChargePeak: v.MayChargePeak, ChargingMode: v.Mode,
		},
		Vehicle: &client.Vehicle{ChargingRateKW: v.Power.KW()},
		Tariff:  &client.Tariff{OffPeakTimes: v.OffPeak, Timezone: "Europe/London", TariffType: flex.DualRate},
	})
}

// report sends the half-hours that have ended as readings.
func (e *Evening) report(ctx context.Context, now time.Time) error {
	var readings []client.ReadingDataPoint
	for _, v := range e.Visits {
		for _, m := range v.Meter(now) {
			readings = append(readings, client.ReadingDataPoint{
				AssetID: v.Asset, StartTimestamp: client.At(m.Period.Start()), EndTimestamp: client.At(m.Period.End()),
				Value: m.Energy / 1000, Label: flex.ChargerEnergy,
			})
		}
	}
	if len(readings) == 0 {
		return nil
	}
	verdicts, err := e.Client.PostReadings(ctx, readings)
	if err != nil {
		return fmt.Errorf("post readings: %w", err)
	}
	for _, r := range verdicts.Responses {
		if !r.Accepted {
			return fmt.Errorf("a reading of %s was not accepted: %s", r.AssetID, r.Error)
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
func (e *Evening) Ended() (at time.Time) {
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
		text += s.From.In(flex.London).Format("15:04") + "-" + s.To.In(flex.London).Format("15:04")
		if s.Limit != flex.NoLimit {
			text += fmt.Sprintf(" at %.1f kW", s.Limit.KW())
		}
	}
	if text == "" {
		return "no charging until " + p.Span().To.In(flex.London).Format("15:04")
	}
	return "charge " + text
}
