package flex

import "time"

// MeteringPoint is a party's time with a metering point, with what is known of the point.
type MeteringPoint struct {
	MPAN     string
	Site     SiteID    // zero while it is not enrolled
	From, To time.Time // To is zero while it lasts
	Meter    *Meter    // nil if it is on no list
	Enrolled bool      // now, in any proposition
}

// MeterPair is what a party tells of a site's metering points (MSIDs) for a time. What is empty is
// not given.
type MeterPair struct {
	Import       string // MPAN
	Export       string // MPAN; empty if the site has none
	BMUnit       string // the secondary BM unit that both are in
	GSPGroup     string
	SupplierMPID string    // of the import
	From, To     time.Time // To is zero while it lasts
	// of any half-hour, as settlement has it
	LargestExport Optional[WattHours]
}

// Lasts reports whether a pair holds at an instant.
func (p *MeterPair) Lasts(at time.Time) bool {
	return !at.Before(p.From) && (p.To.IsZero() || at.Before(p.To))
}
