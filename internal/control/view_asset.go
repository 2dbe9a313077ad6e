package control

import (
	"time"

	"flexd/internal/flex"
)

// AssetView is an asset as it is, and what its schedules in a span were, as an operator is
// shown it.
type AssetView struct {
	ID           flex.AssetID
	ExternalID   string
	Type         flex.AssetType
	Power        *flex.Watts     // rated; null if never given
	Capacity     *flex.WattHours // null if never given
	Phase        string          // of one on one phase, which: L1, L2 or L3; empty for not given
	Phases       int             // that it is planned on, given or by its power
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
	// since when an operator has it excluded from control; zero if it is not
	Excluded     time.Time
	Open         bool
	PluggedInAt  time.Time // of the last session; zero if there never was one
	PluggedOutAt time.Time
	ReadyBy      time.Time
	// the newest schedule that the client has taken; 0 for none
	Accepted int64

	Now  time.Time
	From time.Time // of the time that is shown
	To   time.Time
	// of the last session in that time, the oldest first
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

// View is the past as an operator is shown it.
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

// record is the view of the asset's record and its site's.
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
