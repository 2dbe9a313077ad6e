package directory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Source is a place where metering points are listed. Both methods may return any error:
// flex.NotFound means that there is no such point, flex.TimedOut and flex.Unavailable
// that the source could not be asked.
type Source interface {
	// ByPostcode returns the points with the postcode, in any order, possibly none.
	ByPostcode(context.Context, Postcode) ([]flex.Meter, error)
	// ByMPAN returns all that is known of one point.
	ByMPAN(context.Context, MPAN) (flex.Meter, error)
}

// MaxListed is the number of points of a postcode that a search shows.
const MaxListed = 500

// Directory answers the interface's questions about metering points from one source.
type Directory struct {
	source Source
	refs   *Refs
	now    func() time.Time
}

// New returns a directory over the source. The clock is the store's.
func New(source Source, refs *Refs, now func() time.Time) *Directory {
	return &Directory{source, refs, now}
}

// Listing is one line of a search: an address to choose by, and a reference to use.
type Listing struct {
	Ref     string
	Address string
}

// Search lists the premises of a postcode for a person to choose from, by address, or
// only those that the part of an address names. A premises shows once, by its import
// meter; landlords' supplies and premises that export alone are left out. A postcode
// without meters is an empty list; what is no postcode is a flex.Invalid.
func (d *Directory) Search(
	ctx context.Context,
	org flex.OrgID,
	postcode, building string,
) ([]Listing, error) {
	p, err := FindPostcode(postcode)
	if err != nil {
		return nil, err
	}
	if len(building) > MaxAddress {
		return nil, flex.Fail(
			flex.Invalid,
			"the building is longer than %d characters",
			MaxAddress,
		)
	}

	meters, err := d.source.ByPostcode(ctx, p)
	if err != nil {
		return nil, err
	}

	listings := []Listing{}
	for _, m := range onePerPremises(meters, p, building) {
		number, err := ParseMPAN(m.MPAN)
		if err != nil {
			continue // a source may list what no one can use
		}

		ref, err := d.refs.Seal(number, org, d.now().Add(RefLife))
		if err != nil {
			return nil, err
		}

		listings = append(listings, Listing{ref, fullAddress(m.Address, p)})
	}

	return listings, nil
}

// fullAddress is an address with its postcode, as ByAddress takes it.
func fullAddress(address string, p Postcode) string {
	if _, err := ParseAddress(address); err == nil || address == "" {
		return address
	}
	return address + ", " + string(p)
}

// onePerPremises returns the meter to show for each premises, ordered by address.
func onePerPremises(
	meters []flex.Meter,
	p Postcode,
	building string,
) []flex.Meter {
	meters = slices.Clone(meters)
	slices.SortStableFunc(meters, func(a, b flex.Meter) int {
		if a.Energised != b.Energised {
			return cmp.Compare(orderOf(a.Energised), orderOf(b.Energised))
		}
		return strings.Compare(a.MPAN, b.MPAN)
	})

	listed := map[string]bool{}
	group := premisesOf(meters, p)

	var shown []flex.Meter
	for i, m := range meters {
		a := NewAddress(m.Address, p)

		meant := building == "" || a.Named(building)

		if !m.Import || a.communal || listed[group[i]] {
			continue
		}
		if !meant || len(shown) == MaxListed {
			continue
		}

		listed[group[i]] = true
		shown = append(shown, m)
	}

	slices.SortStableFunc(shown, func(a, b flex.Meter) int {
		return compareNatural(a.Address, b.Address)
	})

	return shown
}

// orderOf returns 0 for what comes first, else 1.
func orderOf(first bool) int {
	if first {
		return 0
	}
	return 1
}

// compareNatural orders text as people do: 2 before 11.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da != "" && db != "" {
			x, y := strings.TrimLeft(da, "0"), strings.TrimLeft(db, "0")
			c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
			if c != 0 {
				return c
			}

			a, b = a[len(da):], b[len(db):]
			continue
		}

		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}

		a, b = a[1:], b[1:]
	}

	return cmp.Compare(len(a), len(b))
}

// ByRef returns the meter of a reference from a search. A reference that was tampered
// with, is another organisation's or has run out is a flex.Invalid.
func (d *Directory) ByRef(
	ctx context.Context,
	org flex.OrgID,
	ref string,
) (flex.Meter, error) {
	m, err := d.refs.Open(ref, org, d.now())
	if err != nil {
		return flex.Meter{}, err
	}

	return d.meter(ctx, m)
}

// ByMPAN returns the meter with the number. What is no MPAN is a flex.Invalid; a number
// that is on no list is a flex.Unclear.
func (d *Directory) ByMPAN(
	ctx context.Context,
	text string,
) (flex.Meter, error) {
	m, err := ParseMPAN(text)
	if err != nil {
		if e, ok := errors.AsType[*flex.Error](err); ok {
			return flex.Meter{}, flex.Fail(
				flex.Invalid,
				"this is no MPAN: %s",
				strings.Join(e.Details, "; "),
			)
		}
		return flex.Meter{}, err
	}

	return d.meter(ctx, m)
}

// meter asks for a meter and calls one that is on no list unclear.
func (d *Directory) meter(ctx context.Context, m MPAN) (flex.Meter, error) {
	meter, err := d.source.ByMPAN(ctx, m)
	if flex.KindOf(err) == flex.NotFound {
		return flex.Meter{}, flex.Fail(
			flex.Unclear,
			"no meter with this MPAN was found",
		)
	}

	return meter, err
}

// ByAddress returns the one import meter at an address, which must hold the postcode and
// start with the number or name of the house, or it is a flex.Invalid. No meter, or more
// than one that could be meant, is a flex.Unclear.
func (d *Directory) ByAddress(
	ctx context.Context,
	address string,
) (flex.Meter, error) {
	q, err := ParseAddress(address)
	if err != nil {
		return flex.Meter{}, err
	}

	meters, err := d.source.ByPostcode(ctx, q.Postcode)
	if err != nil {
		return flex.Meter{}, err
	}

	found, err := Match(q, meters)
	if err != nil {
		return flex.Meter{}, err
	}

	m, err := ParseMPAN(found.MPAN)
	if err != nil {
		return flex.Meter{}, flex.Fail(
			flex.Unclear,
			"the meter at this address is listed with a wrong MPAN",
		)
	}

	return d.meter(ctx, m)
}

// Validate returns nil if the number is that of a connected import meter in the market.
// A badly formed number is a flex.Malformed and any other a flex.NotFound, both with
// Details that list every reason.
func (d *Directory) Validate(ctx context.Context, text string) error {
	m, err := ParseMPAN(text)
	if err != nil {
		return err
	}

	meter, err := d.source.ByMPAN(ctx, m)
	if flex.KindOf(err) == flex.NotFound {
		return &flex.Error{
			Kind:    flex.NotFound,
			Details: []string{"no meter with this MPAN was found"},
		}
	}

	if err != nil {
		return err
	}

	if reasons := unfitReasons(meter); len(reasons) > 0 {
		return &flex.Error{Kind: flex.NotFound, Details: reasons}
	}

	return nil
}

// unfitReasons lists why a meter that exists cannot take part in the market.
func unfitReasons(m flex.Meter) []string {
	var reasons []string
	if !m.Import {
		reasons = append(
			reasons,
			"this is the MPAN of an export meter; give the import meter's",
		)
	}

	if !m.Energised {
		reasons = append(
			reasons,
			"the meter is not energised: no supply flows through it",
		)
	}

	if p, err := ParsePostcode(m.Postcode); err == nil && !p.InGB() {
		reasons = append(reasons, "the meter is not in Great Britain")
	}

	return reasons
}

// Markets lists, in the interface's words, the markets that a meter alone makes its site
// fit for: capacity and local flexibility markets take any live import meter, the
// wholesale market one that is settled half-hourly.
func Markets(m flex.Meter) []string {
	markets := []string{}
	if len(unfitReasons(m)) > 0 {
		return markets
	}

	markets = append(markets, "cm", "dno")
	if m.HalfHourly {
		markets = append(markets, "wholesale")
	}

	return markets
}
