package directory

import (
	"context"

	"flexd/internal/flex"
)

// The points and postcodes at which the sandbox plays a directory in trouble.
const (
	SlowMPAN     = "1099000099012"
	DownMPAN     = "1099000099021"
	SlowPostcode = Postcode("ZZ99 1SL")
	DownPostcode = Postcode("ZZ99 1DN")
)

// SandboxMeters are the sandbox's metering points, one for each case that a client has to
// handle. All are invented; the postcode ZZ99 is in no use.
func SandboxMeters() []flex.Meter {
	return []flex.Meter{
		sandboxMeter("1099000010005", "1 Sandbox Street, Testwick", nil),
		sandboxMeter("1099000010014", "2 Sandbox Street, Testwick", func(m *flex.Meter) {
			m.HalfHourly = false
		}),
		sandboxMeter("1099000010023", "3 Sandbox Street, Testwick", func(m *flex.Meter) {
			m.Domestic = false
		}),
		sandboxMeter("1099000010032", "4 Sandbox Street, Testwick", func(m *flex.Meter) {
			m.Energised = false
		}),

		// A home with solar panels has two points.
		sandboxMeter("1099000010041", "5 Sandbox Street, Testwick", nil),
		sandboxMeter("1099000010050", "5 Sandbox Street, Testwick", func(m *flex.Meter) {
			m.Import = false
		}),

		// Two flats, and the landlord's supply of their stairs.
		sandboxMeter("1099000010060", "Flat 1, Sand Court, 6 Sandbox Street, Testwick", nil),
		sandboxMeter("1099000010079", "Flat 2, Sand Court, 6 Sandbox Street, Testwick", nil),
		sandboxMeter(
			"1099000010088",
			"Landlord's supply, Sand Court, 6 Sandbox Street, Testwick",
			nil,
		),

		// An address with two import points is never guessed at.
		sandboxMeter("1099000010097", "7 Sandbox Street, Testwick", nil),
		sandboxMeter("1099000010102", "7 Sandbox Street, Testwick", nil),
	}
}

// sandboxMeter is an eligible home's import point, but for what change makes of it unless nil.
func sandboxMeter(mpan, address string, change func(*flex.Meter)) flex.Meter {
	m := flex.Meter{
		MPAN:         mpan,
		Address:      address,
		Postcode:     "ZZ99 1AA",
		Import:       true,
		Energised:    true,
		HalfHourly:   true,
		Domestic:     true,
		SupplierMPID: "FLXD",
		SupplierName: "Flexible Energy Supply",
		GSPGroup:     "_A",
	}

	if change != nil {
		change(&m)
	}

	return m
}

// Sandbox is a source that fails in a known way for some points and postcodes, so that a
// client can try how it copes, and passes every other question on.
type Sandbox struct{ Source Source }

// ByPostcode times out for SlowPostcode and fails for DownPostcode.
func (s Sandbox) ByPostcode(
	ctx context.Context,
	p Postcode,
) ([]flex.Meter, error) {
	if err := trouble(p == SlowPostcode, p == DownPostcode); err != nil {
		return nil, err
	}
	return s.Source.ByPostcode(ctx, p)
}

// ByMPAN times out for SlowMPAN and fails for DownMPAN.
func (s Sandbox) ByMPAN(ctx context.Context, m MPAN) (flex.Meter, error) {
	err := trouble(m.Core() == SlowMPAN, m.Core() == DownMPAN)
	if err != nil {
		return flex.Meter{}, err
	}

	return s.Source.ByMPAN(ctx, m)
}

func trouble(slow, down bool) error {
	if slow {
		return flex.Fail(
			flex.TimedOut,
			"the meter directory did not answer within %v; try again later",
			LookupTimeout,
		)
	}

	if down {
		return flex.Fail(
			flex.Unavailable,
			"the meter directory failed; try again later",
		)
	}

	return nil
}
