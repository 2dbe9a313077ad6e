package control

import (
	"time"

	"flexd/internal/flex"
)

// AssetView is the present state of an asset with its schedules in a span, for operators.
type AssetView struct {
	ID           flex.AssetID
	ExternalID   string
	Type         flex.AssetType
	Power        *flex.Watts     // rated; nil if never given
	Capacity     *flex.WattHours // null if never given
	Phase        string          // of a single-phase asset: L1, L2 or L3; empty if not given
	Phases       int             // number of phases that it is planned with, given or derived from its power
	PhasesGiven  bool
	Model        string
	Firmware     string
	SerialNumber string
	CreatedAt    time.Time

	OrgID    flex.OrgID
	OrgName  string
	SiteID   flex.SiteID
	Address  string
	Postcode string

	Controlled bool // its site has consented to full schedule control
	// when an operator excluded it from control; zero if it is not excluded
	Excluded     time.Time
	Open         bool
	PluggedInAt  time.Time // of the last session; zero if there never was one
	PluggedOutAt time.Time
	ReadyBy      time.Time
	// the newest generation that the client has accepted; 0 for none
	Accepted int64

	Now  time.Time
	From time.Time // the beginning of the time shown
	To   time.Time
	// schedules of the last session in that time, the oldest first
	Schedules []ScheduleLine
	Note      string
}

// ScheduleLine names a schedule.
type ScheduleLine struct {
	EventID    flex.EventID
	Generation int64
	MadeAt     time.Time
	Cause      string
}

// View returns the past of an asset in the form that operators see.
func (p *Past) View() AssetView {
	v := p.record()
	c := &p.Charging
	v.Controlled, v.Open = c.Controlled, c.Open()
	v.Excluded = c.Excluded
	v.PluggedInAt, v.PluggedOutAt = c.Session.PluggedInAt, c.Session.PluggedOutAt
	v.ReadyBy = c.Session.ReadyBy
	v.Accepted = p.Accepted

	for _, s := range p.Generations() {
		v.Schedules = append(v.Schedules, ScheduleLine{
			EventID:    s.EventID,
			Generation: s.Generation,
			MadeAt:     s.MadeAt,
			Cause:      string(s.Cause),
		})
	}

	return v
}

// record returns the view with the records of the asset and its site.
func (p *Past) record() AssetView {
	a := &p.Asset
	return AssetView{
		ID:           a.ID,
		ExternalID:   a.ExternalID,
		Type:         a.Type,
		Power:        a.Power,
		Capacity:     a.Capacity,
		Phases:       flex.PhasesOf(a.Phases, a.Power),
		PhasesGiven:  a.Phases > 0,
		Phase:        flex.PhaseNames[a.Phase],
		Model:        a.Model,
		Firmware:     a.Firmware,
		SerialNumber: a.SerialNumber,
		CreatedAt:    a.CreatedAt,
		OrgID:        p.Org.ID,
		OrgName:      p.Org.Name,
		SiteID:       p.Site.ID,
		Address:      p.Site.Address.Reveal(),
		Postcode:     p.Site.Postcode.Reveal(),
		Now:          p.Now,
		From:         p.Span.From,
		To:           p.Span.To,
		Note:         p.BatteryNote,
	}
}
