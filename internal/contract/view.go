package contract

import (
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/registry"
	"flexd/internal/wire"
	"strings"
)

// AssetView is an asset with its schedules and why, as the console shows it.
func AssetView(p *control.Past) wire.AssetView {
	v := assetRecord(p)
	v.addSession(p)

	v.Pauses = pauses(p)
	v.Deadlines = deadlines(p)
	generations := p.Generations()
	v.Schedules = make([]wire.ScheduleView, len(generations))
	for i := range generations {
		v.Schedules[i] = scheduleView(&generations[i])
	}

	if p.Why != nil {
		v.Why = new(Explanation(p.Why))
	}
	if p.Rate != nil {
		v.ChargingRate = new(ChargingRate(p.Rate))
	}
	if p.Battery != nil {
		v.Battery = batteryView(p.Battery)
	}

	return v.AssetView
}

// assetView is an asset in the making.
type assetView struct{ wire.AssetView }

// addSession adds how the asset is, and its last session.
func (v *assetView) addSession(p *control.Past) {
	c := &p.Charging
	v.Controlled, v.PluggedIn = c.Controlled, c.Open()
	v.PluggedInAt, v.PluggedOutAt = wire.At(c.Session.PluggedInAt), wire.At(c.Session.PluggedOutAt)
	v.ReadyBy = wire.At(c.Session.ReadyBy)
	v.AcceptedGeneration = Accepted(p.Accepted)
}

// assetRecord is what the records of the asset and its site say.
func assetRecord(p *control.Past) assetView {
	a, s := &p.Asset, &p.Site

	var v assetView
	v.AssetView = wire.AssetView{
		AssetID:        a.ID,
		ExternalID:     a.ExternalID,
		Type:           a.Type,
		PowerKW:        kilowatts(a.Power),
		CapacityKWh:    kilowattHours(a.Capacity),
		Phases:         flex.PhasesOf(a.Phases, a.Power),
		Phase:          flex.PhaseNames[a.Phase],
		Heat:           Heat(a.Heat),
		Model:          a.Model,
		Firmware:       a.Firmware,
		SerialNumber:   a.SerialNumber,
		CreatedAt:      wire.At(a.CreatedAt),
		OrganisationID: p.Org.ID,
		Organisation:   p.Org.Name,
		SiteID:         s.ID,
		Address:        s.Address.Reveal(),
		Postcode:       s.Postcode.Reveal(),
		Now:            wire.At(p.Now),
		From:           wire.At(p.Span.From),
		To:             wire.At(p.Span.To),
		BatteryNote:    p.BatteryNote,
	}

	return v
}

// deadlines are those of the time that is shown.
func deadlines(p *control.Past) []wire.DeadlineView {
	var all []wire.DeadlineView
	for i := range p.Deadlines {
		d := &p.Deadlines[i]

		v := wire.DeadlineView{
			EventID:      d.EventID,
			Generation:   d.Generation,
			PluggedInAt:  wire.At(d.PluggedInAt),
			PluggedOutAt: wire.At(d.PluggedOutAt),
			ReadyBy:      wire.At(d.ReadyBy),
			NeededKWh:    d.Need.KWh(),
			PromisedKWh:  d.Promised.KWh(),
			MissingKWh:   d.Missing.KWh(),
			Reasons:      []wire.MissingReason{},
			Exact:        d.Exact,
			Text:         d.Text(),
		}

		if d.Metered.Given {
			v.MeteredKWh = new(d.Metered.Value.KWh())
		}

		for _, r := range d.Reasons {
			v.Reasons = append(v.Reasons, wire.MissingReason{
				Reason:    string(r.Cause),
				EnergyKWh: r.Energy.KWh(),
				Text:      r.Text,
			})
		}

		all = append(all, v)
	}

	return all
}

// pauses are those that were asked for in the time that is shown.
func pauses(p *control.Past) []wire.PauseView {
	var all []wire.PauseView
	for i := range p.Events {
		e := &p.Events[i]
		paused, asked := e.Pause()
		if !asked {
			continue
		}

		all = append(all, wire.PauseView{
			AskedAt:        wire.At(e.At),
			StartTimestamp: wire.At(paused.From),
			EndTimestamp:   wire.At(paused.To),
			Text:           strings.TrimPrefix(e.PauseText(), "; "),
		})
	}

	return all
}

// kilowatts is a power that may be unknown.
func kilowatts(w *flex.Watts) *float64 {
	if w == nil {
		return nil
	}
	return new(w.KW())
}

func scheduleView(s *control.PastSchedule) wire.ScheduleView {
	v := wire.ScheduleView{
		EventID:    s.EventID,
		Generation: s.Generation,
		MadeAt:     wire.At(s.MadeAt),
		Cause:      string(s.Cause),
		Periods:    SchedulePeriods(s.Limits()),
	}

	if s.Push != nil {
		v.Delivery = string(s.Push.State)
	}

	return v
}

func batteryView(w *control.BatteryWhy) *wire.BatteryView {
	v := &wire.BatteryView{
		PowerKW:       w.Power.KW(),
		CapacityKWh:   w.Capacity.KWh(),
		StoredKWh:     w.Stored.KWh(),
		CostPence:     w.Plan.Bill,
		WearPence:     w.Plan.Wear,
		IdleCostPence: w.Idle.Bill,
		IdleWearPence: w.Idle.Wear,
		Periods:       make([]wire.BatteryViewPeriod, len(w.Periods)),
	}

	for _, rate := range w.Rates {
		v.Rates = append(v.Rates, inputView(rate))
	}

	reasons := w.Reasons()
	for i, q := range w.Periods {
		v.Periods[i] = wire.BatteryViewPeriod{
			StartTimestamp:    wire.At(q.Start()),
			Mode:              q.Mode.String(),
			WaitsFor:          string(q.WaitsFor()),
			Reason:            reasons[i].Text(),
			ImportPencePerKWh: q.Buy,
			ExportPencePerKWh: q.Sell,
			HomeKWh:           q.Load.KWh(),
			SolarKWh:          q.Roof.KWh(),
			StoredKWh:         q.Stored.KWh(),
		}
	}

	return v
}

// SiteView is a site with its assets, consents and enrolments, as the console shows it.
func SiteView(s *registry.SiteView) wire.SiteView {
	v := wire.SiteView{
		SiteID:           s.ID,
		OrganisationID:   s.OrgID,
		Organisation:     s.OrgName,
		Address:          s.Address,
		Postcode:         s.Postcode,
		Email:            s.Email,
		MPAN:             s.MPAN,
		ExternalUserID:   s.ExternalUserID,
		CreatedAt:        wire.At(s.CreatedAt),
		Tariff:           wire.SiteTariffView(s.Tariff),
		ImportCapacityKW: s.Supply.Import.KW(),
		ExportCapacityKW: s.Supply.Export.KW(),
		CapacitySource:   flex.Supply(s.Supply).Source(),
		DispatchMethods:  s.Methods,
		ConsentAt:        wire.At(s.ConsentAt),
		Meter:            meterView(s.Meter),

		Ratings:    each(s.Ratings, ratingView),
		Assets:     each(s.Assets, siteAssetView),
		Enrolments: each(s.Enrolments, enrolmentView),
		Consents:   each(s.Spans, consentView),
		Changes:    each(s.Steps, siteChangeView),
	}

	if v.DispatchMethods == nil {
		v.DispatchMethods = []flex.DispatchMethod{}
	}

	addAgreed(&v, s)

	return v
}

// addAgreed adds what a site's connection was given as, and how often it may be called and was.
func addAgreed(v *wire.SiteView, s *registry.SiteView) {
	if f := s.Supply.Fuse; f.Phases > 0 {
		v.MainFuse = &wire.MainFuse{Amperes: f.Amperes, Phases: f.Phases}
	}

	v.AgreedCalls = AgreedCalls(s.Calls.Agreed)
	v.CallsToday, v.CallsThisMonth = s.Calls.Counted.Day, s.Calls.Counted.Month
}

func meterView(m *registry.MeterView) *wire.MeterView {
	if m == nil {
		return nil
	}

	return &wire.MeterView{
		Import:            m.Import,
		HalfHourlySettled: m.HalfHourly,
		Energised:         m.Energised,
		Domestic:          m.Domestic,
		SupplierMPID:      m.SupplierMPID,
		SupplierName:      m.SupplierName,
		GSPGroup:          m.GSPGroup,
	}
}

// each is a list in the interface's form; an empty one is not null.
func each[In, Out any](in []In, form func(*In) Out) []Out {
	out := make([]Out, len(in))
	for i := range in {
		out[i] = form(&in[i])
	}

	return out
}

func ratingView(r *registry.RatingView) wire.RatingView {
	return wire.RatingView{
		ExternalID: r.Asset,
		From:       wire.At(r.From),
		Until:      wire.At(r.Until),
		RecordedAt: wire.At(r.At),
		Counts:     r.Counts,
		ImportKW:   r.Import.KW(),
		ExportKW:   r.Export.KW(),
	}
}

func siteAssetView(a *registry.AssetLine) wire.SiteAssetView {
	return wire.SiteAssetView{
		AssetID:     a.ID,
		ExternalID:  a.ExternalID,
		Type:        a.Type,
		PowerKW:     kilowatts(a.Power),
		Model:       a.Model,
		PluggedInAt: wire.At(a.PluggedIn),
		ReadyBy:     wire.At(a.ReadyBy),
	}
}

func enrolmentView(e *registry.EnrolmentLine) wire.EnrolmentView {
	return wire.EnrolmentView{Proposition: e.Name, State: string(e.State)}
}

func consentView(c *registry.ConsentLine) wire.ConsentView {
	return wire.ConsentView{
		From:  wire.At(c.From),
		To:    wire.At(c.To),
		Holds: c.Holds,
	}
}

func siteChangeView(c *registry.SiteStep) wire.SiteChangeView {
	return wire.SiteChangeView{
		At:          wire.At(c.At),
		Consent:     c.Consent,
		Given:       c.Given,
		Proposition: c.Enrolled,
		State:       string(c.State),
	}
}

// FleetView is a fleet as it is now, as the console shows it.
func FleetView(f *operations.FleetView) wire.FleetView {
	return wire.FleetView{
		Now:        wire.At(f.Now),
		Sites:      f.Sites,
		Assets:     f.Assets,
		PluggedIn:  f.Plugged,
		Charging:   f.Charging,
		Short:      f.Short,
		Unplanned:  f.Unplanned,
		DrawingKW:  f.Drawing.KW(),
		HalfHours:  each(f.Lines, fleetHalfHour),
		Exceptions: Exceptions(f.Exceptions),
		Unread:     Unread(f.Unread),
	}
}

func fleetHalfHour(l *operations.Line) wire.FleetHalfHour {
	return wire.FleetHalfHour{
		StartTimestamp: wire.At(l.Start),
		PlannedKW:      l.Planned,
		WithoutFlexdKW: l.Unmoved,
		LowestKW:       l.Lowest,
		HighestKW:      l.Highest,

		BatteryDispatchKW: l.Ordered,
		BatteryKW:         l.Batteries,
		BatteryLowestKW:   l.BatteriesLowest,
		BatteryHighestKW:  l.BatteriesHighest,
		HeatKW:            l.Heat,
	}
}

// Exceptions are what needs looking at.
func Exceptions(found []operations.Exception) []wire.Exception {
	return each(found, exception)
}

// Unread are the kinds of exceptions that could not be looked for, nil where all could be.
func Unread(unread []operations.Unread) []string {
	var kinds []string
	for _, u := range unread {
		kinds = append(kinds, string(u.Kind))
	}

	return kinds
}

func exception(e *operations.Exception) wire.Exception {
	v := wire.Exception{
		Kind:      string(e.Kind),
		Level:     string(e.Level),
		Count:     e.Count,
		EnergyKWh: e.Energy.KWh(),
		Title:     e.Title,
		Text:      e.Text,
		More:      e.More(),
	}

	for _, a := range e.Assets {
		v.Assets = append(v.Assets, wire.ExceptionAsset{
			AssetID:    a.ID,
			ExternalID: a.ExternalID,
		})
	}

	return v
}
