package sim

import (
	"context"
	"fmt"
	"time"

	"flexd/client"
	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
)

// Battery is a simulated home battery beside a steady load. It does what its schedule says,
// asked for as any client asks, and pays the market's price for what the home draws.
type Battery struct {
	Name     string
	Power    flex.Watts
	Capacity flex.WattHours
	Load     flex.Watts
	Stored   float64 // Wh
	Why      string  // what there is to see, for the reader

	Site  client.SiteID
	Asset client.AssetID

	Drawn float64 // Wh that the home has drawn, the battery apart
	// millionths of a pound at market prices, with the battery and without
	Cost    float64
	Without float64

	action battery.Action
	given  float64    // Wh that it gave since it was last looked at
	flow   flex.Watts // into the battery
	at     time.Time
	read   flex.Period // up to its start the state of charge was reported
}

// onboard registers the home and the battery, and says that it pays the market's prices.
func (b *Battery) onboard(
	ctx context.Context,
	c *client.Client,
	mpan, address string,
	now time.Time,
) error {
	site := client.SiteRequest{
		MPAN:                       mpan,
		Postcode:                   "SW1A 1AA",
		StreetAddress:              address,
		Email:                      b.Name + "@example.com",
		GaveBoundaryMeterConsentAt: client.At(now.Add(-consentedFor)),
	}

	asset := client.OnboardingAssetRequest{
		ExternalID: b.Name,
		Type:       client.AssetBattery,
		Properties: &client.AssetProperties{
			PowerKW:     new(b.Power.KW()),
			CapacityKWh: new(b.Capacity.KWh()),
		},
	}

	r, err := c.Onboard(ctx, client.OnboardRequest{
		Site:        site,
		Assets:      []client.OnboardingAssetRequest{asset},
		Proposition: client.PropositionFullAssetSchedule,
	})
	if err != nil {
		return fmt.Errorf("onboard %s: %w", b.Name, err)
	}

	b.Site = r.Site.SiteID
	b.Asset = r.Assets[0].AssetID

	market := client.Tariff{
		Timezone:   "Europe/London",
		TariffType: client.TariffDynamic,
	}

	return c.UpdateTariff(
		ctx,
		b.Asset,
		client.TariffUpdateEventRequest{Tariff: market},
	)
}

// step lets the battery run to the instant, reports its state of charge once in each
// half-hour, and asks what it is to do from now on.
func (b *Battery) step(
	ctx context.Context,
	e *Evening,
	now time.Time,
) error {
	if b.at.IsZero() {
		b.at = now
		e.Say(
			now,
			b.Name,
			fmt.Sprintf(
				"is a battery of %g kWh, %.0f %% full: %s",
				b.Capacity.KWh(),
				b.Full(),
				b.Why,
			),
		)
	}

	b.runTo(now, e.Price)

	if p := flex.PeriodAt(now); p != b.read {
		b.read = p
		err := e.post(ctx, []client.ReadingDataPoint{b.stateOfCharge(now)})
		if err != nil {
			return err
		}
	}

	s, err := e.Client.BatterySchedule(ctx, b.Asset)
	if err != nil {
		return err
	}

	for _, step := range s.ScheduleSteps {
		if !now.Before(step.StartTimestamp.Time) &&
			now.Before(step.EndTimestamp.Time) {
			b.follow(e, step, now)
		}
	}

	return nil
}

// stateOfCharge is a reading of how full the battery is.
func (b *Battery) stateOfCharge(now time.Time) client.ReadingDataPoint {
	return client.ReadingDataPoint{
		AssetID:        b.Asset,
		StartTimestamp: client.At(now),
		EndTimestamp:   client.At(now),
		Value:          b.Full(),
		Label:          client.LabelBatteryStateOfCharge,
	}
}

// follow has the battery do what a step of its schedule says, and says so if it is new.
func (b *Battery) follow(
	e *Evening,
	step client.BatteryScheduleStep,
	now time.Time,
) {
	action := battery.Action(step.Action)
	if action == b.action {
		return
	}

	b.action = action
	until := step.EndTimestamp.In(flex.London).Format("15:04")
	prices := b.prices(e, now, step.EndTimestamp.Time)
	e.Say(
		now,
		b.Name,
		fmt.Sprintf("%s until %s, at %s", b.inWords(), until, prices),
	)
}

// prices says what half-hours cost in which the battery does what it does.
func (b *Battery) prices(
	e *Evening,
	from, to time.Time,
) string {
	least, most := e.Price(flex.PeriodAt(from)), e.Price(flex.PeriodAt(from))
	for p := flex.PeriodAt(from); p.Start().Before(to); p = p.Add(1) {
		least, most = min(least, e.Price(p)), max(most, e.Price(p))
	}

	words := fmt.Sprintf("%.2f £/MWh", least.GBPPerMWh())
	if least < most {
		words = fmt.Sprintf(
			"%.2f to %.2f £/MWh",
			least.GBPPerMWh(),
			most.GBPPerMWh(),
		)
	}
	if b.action == battery.ChargeMax && least < 0 {
		words += ", and is paid for it where that is below zero"
	}

	return words
}

func (b *Battery) inWords() string {
	if b.action == battery.ChargeMax {
		return "charges"
	}

	if b.action == battery.DischargeMax {
		return "covers the home and sells the rest"
	}

	if b.action == battery.AvoidImport {
		return "covers the home"
	}

	return "waits"
}

// runTo lets time pass as the battery was sent last.
func (b *Battery) runTo(to time.Time, price func(flex.Period) flex.Price) {
	for b.at.Before(to) {
		p := flex.PeriodAt(b.at)
		next := p.End()
		if to.Before(next) {
			next = to
		}

		hours := next.Sub(b.at).Hours()
		moved := b.move(float64(b.asked()) * hours)
		b.flow = flex.Watts(moved / hours)

		used := float64(b.Load) * hours
		worth := float64(price(p)) / 1e6
		b.Drawn += used
		b.Cost += (used + moved) * worth
		b.Without += used * worth
		b.at = next
	}
}

// asked is the power that the battery's action has go into it, whatever it holds.
func (b *Battery) asked() flex.Watts {
	switch b.action {
	case battery.ChargeMax:
		return b.Power
	case battery.DischargeMax:
		return -b.Power
	case battery.AvoidImport:
		return -min(b.Power, b.Load)
	}

	return 0
}

// move puts energy into the battery, or takes it out where it is below zero, as far as what is
// stored allows. It returns how much that is on the grid's side, in Wh.
func (b *Battery) move(energy float64) float64 {
	least, most := home.Battery{Power: b.Power, Capacity: b.Capacity}.Usable()
	if energy > 0 {
		energy = min(energy, (float64(most)-b.Stored)/home.Efficiency)
		b.Stored += energy * home.Efficiency
		return energy
	}

	energy = -min(-energy, max(0, b.Stored-float64(least))*home.Efficiency)
	b.Stored += energy / home.Efficiency
	b.given -= energy

	return energy
}

// churn has the battery charge in one half-hour and give in the next, whatever its schedule says.
func (b *Battery) churn(now time.Time) {
	b.action = battery.ChargeMax
	if flex.PeriodAt(now).Start().Minute() >= 30 {
		b.action = battery.DischargeMax
	}
}

// Full returns the state of charge in percent.
func (b *Battery) Full() float64 { return 100 * b.Stored / float64(b.Capacity) }

// Flow returns the power that went into the battery last; what it gives is below zero.
func (b *Battery) Flow() flex.Watts { return b.flow }
