package market

import (
	"context"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Limits of a list of pairs.
const (
	pairsMax  = 200_000
	exportMax = 100_000 // kWh of a half-hour
)

var (
	bmUnitForm   = regexp.MustCompile(`^[A-Z0-9_-]{1,11}$`)
	gspForm      = regexp.MustCompile(`^_[A-P]$`)
	supplierForm = regexp.MustCompile(`^[A-Z0-9]{4}$`)
)

// ImportPairs stores a party's list of its pairs of metering points in place of the one
// before: import_mpan, export_mpan, bm_unit, gsp_group, supplier_mpid, from_date, to_date (the
// last day), largest_export_kwh. If a row is wrong, nothing is stored, and the error names the
// row. A list without rows is refused, unless empty is set.
func (s *Service) ImportPairs(
	ctx context.Context,
	org flex.OrgID,
	r io.Reader,
	empty bool,
) (int, error) {
	pairs, err := ReadPairs(r)
	if err != nil {
		return 0, err
	}

	if len(pairs) == 0 && !empty {
		return 0, flex.Fail(
			flex.Invalid,
			"the list has no row, and the list before stays: --empty removes it",
		)
	}

	return len(pairs), s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return tx.PutPairs(ctx, pairs)
	})
}

// ReadPairs reads a list of pairs of metering points. It is a flex.Invalid that names the line
// if a metering point is in two pairs on one day, or a secondary BM unit in two GSP groups.
func ReadPairs(r io.Reader) ([]flex.MeterPair, error) {
	l := pairList{
		points: map[string][]pairLine{},
		units:  map[string][]pairLine{},
	}

	var pairs []flex.MeterPair
	for row, err := range csvfile.Read(r, "import_mpan", "from_date") {
		if err != nil {
			return nil, err
		}

		p, err := readPair(row)
		if err != nil {
			return nil, err
		}
		if err := l.add(row, p); err != nil {
			return nil, err
		}

		pairs = append(pairs, p)
		if len(pairs) > pairsMax {
			return nil, row.Fault("the list has more than %d rows", pairsMax)
		}
	}

	return pairs, nil
}

func readPair(row csvfile.Row) (flex.MeterPair, error) {
	imports, err := directory.ParseMPAN(row.Get("import_mpan"))
	if err != nil {
		return flex.MeterPair{}, row.Fault("import_mpan: %v", err)
	}

	var p flex.MeterPair
	p.Import = imports.Core()
	if text := row.Get("export_mpan"); text != "" {
		exports, err := directory.ParseMPAN(text)
		if err != nil {
			return p, row.Fault("export_mpan: %v", err)
		}
		p.Export = exports.Core()
	}

	for _, f := range []struct {
		column string
		like   string
		form   *regexp.Regexp
		to     *string
	}{{"bm_unit", "V__ABCD001", bmUnitForm, &p.BMUnit}, {"gsp_group", "_A to _P", gspForm, &p.GSPGroup}, {"supplier_mpid", "four letters or digits", supplierForm, &p.SupplierMPID}} {
		text := strings.ToUpper(row.Get(f.column))
		if text != "" && !f.form.MatchString(text) {
			return p, row.Fault("%s is like %s, not %q", f.column, f.like, text)
		}
		*f.to = strings.Clone(text)
	}

	if err := readPairTime(row, &p); err != nil {
		return p, err
	}

	p.LargestExport, err = readLargest(row)

	return p, err
}

// readPairTime reads the days of a pair.
func readPairTime(row csvfile.Row, p *flex.MeterPair) error {
	from, err := flex.ParseDay(row.Get("from_date"))
	if err != nil {
		return row.Fault(
			"from_date is written YYYY-MM-DD, not %q",
			row.Get("from_date"),
		)
	}

	p.From = from.Start()
	text := row.Get("to_date")
	if text == "" {
		return nil
	}

	last, err := flex.ParseDay(text)
	if err != nil {
		return row.Fault("to_date is written YYYY-MM-DD, not %q", text)
	}

	p.To = last.Add(1).Start()
	if !p.To.After(p.From) {
		return row.Fault("to_date is before from_date")
	}

	return nil
}

// readLargest reads the largest export of a half-hour, if it was reported.
func readLargest(row csvfile.Row) (flex.Optional[flex.WattHours], error) {
	text := row.Get("largest_export_kwh")
	if text == "" {
		return flex.Optional[flex.WattHours]{}, nil
	}

	kwh, err := strconv.ParseFloat(text, 64)
	if inside := kwh >= 0 && kwh <= exportMax; err != nil || !inside {
		return flex.Optional[flex.WattHours]{}, row.Fault(
			"largest_export_kwh is a number from 0 to %d, not %q",
			exportMax,
			text,
		)
	}

	return flex.Some(flex.WattHours(math.Round(kwh * 1000))), nil
}

// pairLine is a row of a list with its time.
type pairLine struct {
	pair flex.MeterPair
	line int
}

// pairList holds the rows of a list read so far, by metering point and by BM unit.
type pairList struct {
	points map[string][]pairLine
	units  map[string][]pairLine
}

// add adds a row, unless it contradicts another one.
func (l *pairList) add(row csvfile.Row, p flex.MeterPair) error {
	mine := pairLine{p, row.Line}
	if p.Export == p.Import {
		return row.Fault("import_mpan and export_mpan are the same")
	}

	for _, point := range []string{p.Import, p.Export} {
		if point == "" {
			continue
		}

		if other := mine.meets(l.points[point]); other != nil {
			return row.Fault(
				"the metering point %s is in the pair of line %d on the same days",
				directory.Mask(point),
				other.line,
			)
		}

		l.points[point] = append(l.points[point], mine)
	}

	if p.BMUnit == "" || p.GSPGroup == "" {
		return nil
	}

	return l.addUnit(row, mine)
}

// addUnit records the GSP group of a row's secondary BM unit. It fails if another row for the
// same days has the unit in another group.
func (l *pairList) addUnit(row csvfile.Row, mine pairLine) error {
	p := &mine.pair

	// Rows of a unit that agree in group and days are recorded once, so that few are compared.
	differs := func(o pairLine) bool { return o.pair.GSPGroup != p.GSPGroup }
	other := mine.meets(slices.DeleteFunc(slices.Clone(l.units[p.BMUnit]), func(o pairLine) bool {
		return !differs(o)
	}))

	if other != nil {
		return row.Fault(
			"the BM unit %s is in GSP group %s by line %d, and in %s here: a secondary BM unit is in one",
			p.BMUnit,
			other.pair.GSPGroup,
			other.line,
			p.GSPGroup,
		)
	}

	same := func(o pairLine) bool {
		return !differs(o) && o.pair.From.Equal(p.From) && o.pair.To.Equal(p.To)
	}

	if !slices.ContainsFunc(l.units[p.BMUnit], same) {
		l.units[p.BMUnit] = append(l.units[p.BMUnit], mine)
	}

	return nil
}

// meets returns the first of the others whose days overlap the row's, or nil.
func (l pairLine) meets(others []pairLine) *pairLine {
	for i := range others {
		o := &others[i]
		before := !o.pair.To.IsZero() && !o.pair.To.After(l.pair.From)
		after := !l.pair.To.IsZero() && !l.pair.To.After(o.pair.From)

		if !before && !after {
			return o
		}
	}

	return nil
}

// Point is a metering point of a party with what the party reported of its pairs, by time.
type Point struct {
	flex.MeteringPoint
	Pairs []flex.MeterPair
}

// At returns the point's pair at an instant, or nil.
func (p *Point) At(at time.Time) *flex.MeterPair {
	for i := range p.Pairs {
		if p.Pairs[i].Lasts(at) {
			return &p.Pairs[i]
		}
	}

	return nil
}

// Place returns the point's GSP group and supplier at an instant, as the party reported them,
// else as the directory has them; empty if not known.
func (p *Point) Place(at time.Time) (gsp, supplier string) {
	if p.Meter != nil {
		gsp, supplier = p.Meter.GSPGroup, p.Meter.SupplierMPID
	}

	if pair := p.At(at); pair != nil {
		if pair.GSPGroup != "" {
			gsp = pair.GSPGroup
		}
		if pair.SupplierMPID != "" {
			supplier = pair.SupplierMPID
		}
	}

	return gsp, supplier
}

// paired joins a party's points with their pairs.
func paired(points []flex.MeteringPoint, pairs []flex.MeterPair) []Point {
	by := map[string][]flex.MeterPair{}
	for _, p := range pairs {
		by[p.Import] = append(by[p.Import], p)
	}

	out := make([]Point, len(points))
	for i, p := range points {
		out[i] = Point{p, by[p.MPAN]}
	}

	return out
}

// Whether a metering point may be traded, as far as is known.
const (
	EligibleYes     = "yes"
	EligibleNo      = "no"
	EligibleUnknown = "not known"
)

// Eligible says whether a metering point may be traded at an instant, and if not, why: by its
// entry in the directory and, if there is a limit, by its largest half-hourly export.
func (p *Point) Eligible(
	at time.Time,
	limit flex.Optional[flex.WattHours],
) (string, []string) {
	var why []string
	if p.Meter != nil {
		why = meterIssues(p.Meter)
	}

	var largest flex.Optional[flex.WattHours]
	if pair := p.At(at); pair != nil {
		largest = pair.LargestExport
	}

	if limit.Given && largest.Given && largest.Value > limit.Value {
		why = append(
			why,
			"its largest half-hourly export, "+string(kwh(largest.Value))+
				" kWh, is above the limit of "+string(kwh(limit.Value)),
		)
	}

	if len(why) > 0 {
		return EligibleNo, why
	}

	if p.Meter == nil {
		return EligibleUnknown, []string{onNoList}
	}

	if limit.Given && !largest.Given {
		return EligibleUnknown, []string{
			"its largest half-hourly export is not given",
		}
	}

	return EligibleYes, nil
}
