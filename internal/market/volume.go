package market

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// SettlementRuns are the settlement runs, the earliest first. A later run supersedes an
// earlier one.
var SettlementRuns = []string{"II", "SF", "R1", "R2", "R3", "RF", "DF"}

// runNumber returns a run's number, from 1; an unknown run is flex.Invalid.
func runNumber(name string) (int, error) {
	i := slices.Index(SettlementRuns, name)
	if i < 0 {
		return 0, flex.Fail(
			flex.Invalid,
			"%q is no settlement run: it is one of %v",
			name,
			SettlementRuns,
		)
	}

	return i + 1, nil
}

// pointsAtOnce is for how many metering points a month is read at a time.
const pointsAtOnce = 50

// MonthSpan is the time of a London month.
func MonthSpan(m ledger.Month) flex.Span {
	return flex.Span{
		From: m.First().Start(),
		To:   m.Last().Add(1).Start(),
	}
}

// Points returns the organisation's register of metering points in a month.
func (s *Service) Points(
	ctx context.Context,
	org flex.OrgID,
	m ledger.Month,
) ([]Point, error) {
	var ps []Point
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		points, err := tx.Points(ctx, MonthSpan(m))
		if err != nil {
			return err
		}

		pairs, err := tx.Pairs(ctx, MonthSpan(m))
		ps = paired(points, pairs)
		return err
	})

	return ps, err
}

// ExportLimit returns the half-hourly export above which the organisation's metering points are not
// eligible. It is not given if the organisation has set none.
func (s *Service) ExportLimit(
	ctx context.Context,
	org flex.OrgID,
) (flex.Optional[flex.WattHours], error) {
	var limit flex.Optional[flex.WattHours]
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(ctx)
		limit = o.Settings.ExportLimit
		return err
	})

	return limit, err
}

// Why a half-hour of a metering point has no delivered volume, or differs from a report.
const (
	WhyNoEvent   = "no flex event"
	WhyWaiting   = "a flex event waits for readings or a price"
	WhyNotAsked  = "not in the report"
	WhyNotHere   = "settled, and no flex event here"
	WhyDifferent = "both settled, differently"
)

// PointHalfHour is a half-hour of a metering point. Energies are net import: a reduction is
// negative.
type PointHalfHour struct {
	Point     *Point
	At        time.Time
	Own       bool           // whether flexd settled it
	Metered   flex.WattHours // known if Own
	Delivered flex.WattHours
	Why       string // why it is not settled here; empty if it is

	Settled *flex.WattHours // delivered energy by the report; nil if the report has none
	Price   *flex.Price     // the settlement price; nil if it is not known
}

// Expected returns the baseline: the metered energy less the delivered energy.
func (h *PointHalfHour) Expected() flex.WattHours {
	return h.Metered - h.Delivered
}

// Difference returns the delivered energy by the report less that by flexd.
func (h *PointHalfHour) Difference() flex.WattHours {
	if h.Settled == nil {
		return -h.Delivered
	}
	return *h.Settled - h.Delivered
}

// Worth returns the value of the difference to the party at the settlement price. It is false
// if the price is not known and there is a difference.
func (h *PointHalfHour) Worth() (settle.PicoPounds, bool) {
	if h.Price == nil {
		return 0, h.Difference() == 0
	}
	return settle.Revenue(h.Difference(), *h.Price), true
}

// Outcome reports whether the report and flexd agree on the half-hour, and if not, why.
func (h *PointHalfHour) Outcome() (matched bool, why string) {
	switch {
	case h.Settled == nil && h.Own && h.Delivered != 0:
		return false, WhyNotAsked
	case h.Settled == nil && !h.Own:
		return h.Why != WhyWaiting, h.Why
	case h.Difference() == 0:
		return true, ""
	case !h.Own && h.Why == WhyWaiting:
		return false, WhyWaiting
	case !h.Own:
		return false, WhyNotHere
	}

	return false, WhyDifferent
}

// HalfHours calls each with every half-hour of a month in which a metering point belonged to
// the party, by point and then by time, with the energy by the reports of a run or of the
// latest run before it. An empty run reads no reports. The month is read for a few points at a
// time.
func (s *Service) HalfHours(
	ctx context.Context,
	org flex.OrgID,
	m ledger.Month,
	run string,
	each func(*PointHalfHour) error,
) error {
	number := 0
	if run != "" {
		var err error
		number, err = runNumber(run)
		if err != nil {
			return err
		}
	}

	points, err := s.Points(ctx, org, m)
	if err != nil {
		return err
	}

	month := pointMonth{span: MonthSpan(m), run: number}
	for chunk := range slices.Chunk(points, pointsAtOnce) {
		err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
			return month.read(ctx, tx, chunk)
		})
		if err != nil {
			return err
		}

		for i := range chunk {
			if err := month.each(&chunk[i], each); err != nil {
				return err
			}
		}
	}

	return nil
}

// pointMonth is a month of some metering points.
type pointMonth struct {
	span    flex.Span
	run     int // 0: no reports
	prices  map[int64]flex.Price
	own     map[flex.SiteID]map[int64]store.Volume
	waiting map[flex.SiteID][]flex.Span
	settled map[string]map[int64]flex.WattHours
}

func (m *pointMonth) read(
	ctx context.Context,
	tx *store.Tx,
	points []Point,
) error {
	var sites []flex.SiteID
	var mpans []string

	for _, p := range points {
		mpans = append(mpans, p.MPAN)
		if !p.Site.IsZero() {
			sites = append(sites, p.Site)
		}
	}

	if m.prices == nil {
		if err := m.readPrices(ctx, tx); err != nil {
			return err
		}
	}

	if err := m.readOwn(ctx, tx, sites); err != nil {
		return err
	}

	return m.readReports(ctx, tx, mpans)
}

// readOwn reads the volumes that flexd settled.
func (m *pointMonth) readOwn(
	ctx context.Context,
	tx *store.Tx,
	sites []flex.SiteID,
) error {
	volumes, err := tx.Volumes(ctx, sites, m.span)
	if err != nil {
		return err
	}

	m.own = map[flex.SiteID]map[int64]store.Volume{}
	for _, v := range volumes {
		if m.own[v.Site] == nil {
			m.own[v.Site] = map[int64]store.Volume{}
		}
		m.own[v.Site][v.At.Unix()] = v
	}

	m.waiting, err = tx.WaitingAt(ctx, sites, m.span)

	return err
}

// readReports reads the volumes of reports, if a run was given.
func (m *pointMonth) readReports(
	ctx context.Context,
	tx *store.Tx,
	mpans []string,
) error {
	m.settled = map[string]map[int64]flex.WattHours{}
	if m.run == 0 {
		return nil
	}

	settled, err := tx.SettledVolumes(ctx, mpans, m.span, m.run)
	for _, v := range settled {
		if m.settled[v.MPAN] == nil {
			m.settled[v.MPAN] = map[int64]flex.WattHours{}
		}
		m.settled[v.MPAN][v.At.Unix()] = v.Delivered
	}

	return err
}

func (m *pointMonth) readPrices(ctx context.Context, tx *store.Tx) error {
	quotes, err := tx.SettlementQuotes(ctx, m.span, tx.Now())
	m.prices = map[int64]flex.Price{}

	for _, q := range quotes {
		if q.Known {
			m.prices[q.Period.Start().Unix()] = q.Price
		}
	}

	return err
}

// each calls the function each with the half-hours in which the point belonged to the party.
func (m *pointMonth) each(p *Point, each func(*PointHalfHour) error) error {
	for at := flex.PeriodAt(m.span.From); at.Start().Before(m.span.To); at = at.Add(1) {
		start := at.Start()
		if start.Before(flex.PeriodAt(p.From).Start()) ||
			!p.To.IsZero() && !start.Before(p.To) {
			continue
		}

		h := m.halfHour(p, start)
		if err := each(&h); err != nil {
			return err
		}
	}

	return nil
}

func (m *pointMonth) halfHour(p *Point, start time.Time) PointHalfHour {
	h := PointHalfHour{
		Point: p,
		At:    start,
		Why:   WhyNoEvent,
	}

	if v, own := m.own[p.Site][start.Unix()]; own && !p.Site.IsZero() {
		h.Own, h.Why = true, ""
		h.Metered, h.Delivered = v.Metered, v.Delivered
	}

	waits := func(s flex.Span) bool { return s.Contains(start) }
	if !h.Own && slices.ContainsFunc(m.waiting[p.Site], waits) {
		h.Why = WhyWaiting
	}

	if price, known := m.prices[start.Unix()]; known {
		h.Price = &price
	}

	if e, said := m.settled[p.MPAN][start.Unix()]; said {
		h.Settled = &e
	}

	return h
}

// Sums are totals of half-hours.
type Sums struct {
	HalfHours int
	Matched   int
	Own       flex.WattHours
	Settled   flex.WattHours
	Expected  flex.WattHours // of the half-hours that flexd settled
	Worth     settle.PicoPounds
	// number of differences without a settlement price, which are not in Worth
	Unpriced  int
	Unmatched map[string]int // number of unmatched half-hours, by reason
}

// Add adds a half-hour.
func (s *Sums) Add(h *PointHalfHour) {
	s.HalfHours++
	s.Own += h.Delivered

	if h.Own {
		s.Expected += h.Expected()
	}

	if h.Settled != nil {
		s.Settled += *h.Settled
	}

	matched, why := h.Outcome()
	if matched {
		s.Matched++
		return
	}

	if s.Unmatched == nil {
		s.Unmatched = map[string]int{}
	}

	s.Unmatched[why]++
	worth, known := h.Worth()
	s.Worth += worth

	if !known {
		s.Unpriced++
	}
}

// Group returns the name of the sums that a half-hour is counted in: its GSP group and its
// supplier.
func (h *PointHalfHour) Group() string {
	gsp, supplier := h.Point.Place(h.At)
	if gsp == "" && supplier == "" {
		return onNoListShort
	}

	return fmt.Sprintf("%s %s", gsp, supplier)
}

// Supplier returns the name of the sums of suppliers that a half-hour is counted in.
func (h *PointHalfHour) Supplier() string {
	if _, supplier := h.Point.Place(h.At); supplier != "" {
		return supplier
	}
	return onNoListShort
}

// Texts for a metering point that is on no imported list.
const (
	onNoList      = "on no list of metering points"
	onNoListShort = "on no list"
)

// PointIssues returns the reasons why the half-hours of a metering point's own meter are not
// settled; none if they are.
func PointIssues(p *flex.MeteringPoint) []string {
	var issues []string
	if !p.Enrolled {
		issues = append(issues, "not enrolled now")
	}

	m := p.Meter
	if m == nil {
		return append(issues, onNoList)
	}

	return append(issues, meterIssues(m)...)
}

// meterIssues returns what in a metering point's entry in the directory prevents its settlement.
func meterIssues(m *flex.Meter) []string {
	var issues []string
	for _, f := range []struct {
		well bool
		text string
	}{{m.Import, "its direction is export"}, {m.Energised, "not energised"}, {m.HalfHourly, "not settled half-hourly"}, {m.Domestic, "not domestic"}} {
		if !f.well {
			issues = append(issues, f.text)
		}
	}

	return issues
}
