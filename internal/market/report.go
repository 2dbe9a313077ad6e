package market

import (
	"context"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Limits of a settlement report.
const (
	reportRowsAtOnce = 2000 // stored in one transaction
	namedMax         = 20   // wrong metering points that an error names

	deliveredMax = 100_000 // kWh of a half-hour
)

// ImportReport stores a settlement report of a run: mpan, settlement_date, settlement_period,
// delivered_kwh. It is read twice: if any row is wrong, or of a metering point that was not the
// party's at the time, nothing is imported. The same report again changes nothing.
func (s *Service) ImportReport(
	ctx context.Context,
	org flex.OrgID,
	run string,
	open func() (io.ReadCloser, error),
) (int, error) {
	number, err := runNumber(run)
	if err != nil {
		return 0, err
	}

	r := report{
		run:    number,
		points: map[string][]flex.MeteringPoint{},
	}

	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		points, err := tx.Points(ctx, flex.Span{To: tx.Now()})
		for _, p := range points {
			r.points[p.MPAN] = append(r.points[p.MPAN], p)
		}
		return err
	})
	if err != nil {
		return 0, err
	}

	if err := r.read(open, func(store.SettledVolume) error {
		return nil
	}); err != nil {
		return 0, err
	}

	if len(r.wrong) > 0 {
		return 0, flex.Fail(
			flex.Invalid,
			"nothing was imported: at these times these metering points are not this organisation's: %s",
			strings.Join(r.wrong, "; "),
		)
	}

	return s.storeReport(ctx, org, &r, open)
}

// storeReport stores the rows of a report in transactions of bounded size.
func (s *Service) storeReport(
	ctx context.Context,
	org flex.OrgID,
	r *report,
	open func() (io.ReadCloser, error),
) (int, error) {
	var batch []store.SettledVolume
	var rows int
	storeBatch := func() error {
		err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
			return tx.PutSettledVolumes(ctx, batch)
		})
		rows += len(batch)
		batch = batch[:0]
		return err
	}

	err := r.read(open, func(v store.SettledVolume) error {
		batch = append(batch, v)
		if len(batch) < reportRowsAtOnce {
			return nil
		}
		return storeBatch()
	})
	if err == nil {
		err = storeBatch()
	}

	return rows, err
}

// report reads a settlement report.
type report struct {
	run    int
	points map[string][]flex.MeteringPoint // the party's metering points, by MPAN
	wrong  []string                        // metering points that are not the party's, with their lines
}

// read calls each with the report's rows, in their order.
func (r *report) read(
	open func() (io.ReadCloser, error),
	each func(store.SettledVolume) error,
) error {
	f, err := open()
	if err != nil {
		return err
	}

	defer f.Close()

	for row, err := range csvfile.Read(
		f,
		"mpan",
		"settlement_date",
		"settlement_period",
		"delivered_kwh",
	) {
		if err != nil {
			return err
		}

		v, err := r.row(row)
		if err != nil {
			return err
		}

		if err := each(v); err != nil {
			return err
		}
	}

	return nil
}

func (r *report) row(row csvfile.Row) (store.SettledVolume, error) {
	v := store.SettledVolume{
		MPAN: strings.Clone(row.Get("mpan")),
		Run:  r.run,
	}

	day, err := flex.ParseDay(row.Get("settlement_date"))
	if err != nil {
		return v, row.Fault(
			"settlement_date is written YYYY-MM-DD, not %q",
			row.Get("settlement_date"),
		)
	}

	n, err := strconv.Atoi(row.Get("settlement_period"))
	if err != nil || n < 1 || n > day.Periods() {
		return v, row.Fault(
			"settlement_period of %s is from 1 to %d, not %q",
			day,
			day.Periods(),
			row.Get("settlement_period"),
		)
	}

	kwh, err := strconv.ParseFloat(row.Get("delivered_kwh"), 64)
	if inside := math.Abs(kwh) <= deliveredMax; err != nil || !inside {
		return v, row.Fault(
			"delivered_kwh is a number within %d, not %q",
			deliveredMax,
			row.Get("delivered_kwh"),
		)
	}

	v.At, v.Delivered = day.Period(n).Start(), flex.WattHours(math.Round(kwh*1000))
	v.Site = r.siteAt(v.MPAN, v.At)
	if v.Site.IsZero() {
		r.refuse(v.MPAN, row.Line)
	}

	return v, nil
}

// siteAt returns the site of a metering point in a half-hour; zero if the point was not the
// party's then.
func (r *report) siteAt(mpan string, at time.Time) flex.SiteID {
	var site flex.SiteID
	for _, p := range r.points[mpan] {
		over := !p.To.IsZero() && !at.Before(p.To)
		if at.Add(flex.HalfHour).After(p.From) && !over {
			site = p.Site
		}
	}

	return site
}

// refuse records a wrong metering point, once, with the line of its first row.
func (r *report) refuse(mpan string, line int) {
	name := mpan + " (line "
	known := slices.ContainsFunc(r.wrong, func(w string) bool {
		return strings.HasPrefix(w, name)
	})
	if len(r.wrong) < namedMax && !known {
		r.wrong = append(r.wrong, name+strconv.Itoa(line)+")")
	}
}

// volumeColumns are the columns of the file of volumes, which include those of a settlement report.
var volumeColumns = []string{
	"mpan", "settlement_date", "settlement_period", "start", "gsp_group", "supplier_mpid", "expected_kwh", "metered_kwh", "delivered_kwh", "reason",
	"export_mpan", "bm_unit",
}

// WriteVolumes writes the expected, metered and delivered energy of every half-hour of every
// metering point in a month as CSV, and returns the number of rows.
func (s *Service) WriteVolumes(
	ctx context.Context,
	org flex.OrgID,
	m ledger.Month,
	out io.Writer,
) (int, error) {
	w := csvfile.NewWriter(out, volumeColumns...)

	var n int
	err := s.HalfHours(ctx, org, m, "", func(h *PointHalfHour) error {
		n++
		gsp, supplier := h.Point.Place(h.At)
		day, period := flex.PeriodAt(h.At).SettlementPeriod()
		var pair flex.MeterPair
		if reported := h.Point.At(h.At); reported != nil {
			pair = *reported
		}

		var expected, metered any
		delivered := csvfile.Number("0")

		if h.Own {
			expected, metered = kwh(h.Expected()), kwh(h.Metered)
			delivered = kwh(h.Delivered)
		}

		w.Write(
			csvfile.Number(h.Point.MPAN),
			day.String(),
			period,
			h.At,
			gsp,
			supplier,
			expected,
			metered,
			delivered,
			h.Why,
			csvfile.Number(pair.Export),
			pair.BMUnit,
		)

		return nil
	})

	if err != nil {
		return n, err
	}

	return n, w.Flush()
}

// comparedColumns are the columns of a comparison.
var comparedColumns = []string{
	"mpan", "settlement_date", "settlement_period", "start", "gsp_group", "supplier_mpid", "own_kwh", "settled_kwh", "difference_kwh",
	"price_gbp_per_mwh", "difference_gbp", "matched", "reason",
}

// Comparison compares the volumes that flexd settled with those of reports.
type Comparison struct {
	All       Sums
	Groups    map[string]*Sums // by GSP group and supplier
	Suppliers map[string]*Sums // by supplier alone
}

// Compare compares a month with the reports of a run, or of the latest run before it; an empty
// run is the last of all. If out is not nil, every half-hour that either has settled is
// written to it as CSV.
func (s *Service) Compare(
	ctx context.Context,
	org flex.OrgID,
	m ledger.Month,
	run string,
	out io.Writer,
) (Comparison, error) {
	if run == "" {
		run = SettlementRuns[len(SettlementRuns)-1]
	}

	var c Comparison
	c.Groups, c.Suppliers = map[string]*Sums{}, map[string]*Sums{}
	var w *csvfile.Writer

	if out != nil {
		w = csvfile.NewWriter(out, comparedColumns...)
	}

	err := s.HalfHours(ctx, org, m, run, func(h *PointHalfHour) error {
		c.All.Add(h)
		addTo(c.Groups, h.Group(), h)
		addTo(c.Suppliers, h.Supplier(), h)

		if w != nil && (h.Own || h.Settled != nil) {
			h.write(w)
		}

		return nil
	})
	if err != nil || w == nil {
		return c, err
	}

	return c, w.Flush()
}

// addTo adds a half-hour to the sums of a name.
func addTo(sums map[string]*Sums, name string, h *PointHalfHour) {
	if sums[name] == nil {
		sums[name] = &Sums{}
	}
	sums[name].Add(h)
}

// write writes the half-hour as a row of a comparison.
func (h *PointHalfHour) write(w *csvfile.Writer) {
	gsp, supplier := h.Point.Place(h.At)
	day, period := flex.PeriodAt(h.At).SettlementPeriod()
	matched, why := h.Outcome()
	var own, settled, price, worth any

	if h.Own {
		own = kwh(h.Delivered)
	}

	if h.Settled != nil {
		settled = kwh(*h.Settled)
	}

	if h.Price != nil {
		price = csvfile.Number(strconv.FormatFloat(
			h.Price.GBPPerMWh(),
			'f',
			-1,
			64,
		))

		difference, _ := h.Worth()
		worth = csvfile.Number(strconv.FormatFloat(
			float64(difference)/1e12,
			'f',
			-1,
			64,
		))
	}

	w.Write(
		csvfile.Number(h.Point.MPAN),
		day.String(),
		period,
		h.At,
		gsp,
		supplier,
		own,
		settled,
		kwh(h.Difference()),
		price,
		worth,
		matched,
		why,
	)
}

func kwh(e flex.WattHours) csvfile.Number {
	return csvfile.Number(strconv.FormatFloat(e.KWh(), 'f', 3, 64))
}
