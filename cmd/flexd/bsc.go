package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/market"
	records "flexd/internal/store"
)

// bsc is `flexd bsc`.
type bsc struct {
	Register bscRegister `cmd:"" help:"The register of metering points in a month: dates, GSP group, supplier, and what stands in the way of settlement. Example: flexd bsc register Acme --month 2026-10"`
	Volumes  bscVolumes  `cmd:"" help:"Expected, metered and delivered volume of every point and half-hour of a month, as CSV. Example: flexd bsc volumes Acme --month 2026-10 --out volumes.csv"`
	Import   bscImport   `cmd:"" help:"Import a settlement report of a run: mpan, settlement_date, settlement_period, delivered_kwh. Example: flexd bsc import Acme report.csv --run SF"`
	Compare  bscCompare  `cmd:"" help:"What flexd settled against what a run's reports say. Example: flexd bsc compare Acme --month 2026-10 --run SF --out differences.csv"`
}

// ofMonth is what most of the commands ask for.
type ofMonth struct {
	store
	Org   string `arg:"" help:"The organisation's name."`
	Month string `help:"A London month." required:"" placeholder:"2026-10"`
	JSON  bool   `help:"Print as JSON." name:"json"`
}

// opened opens the store and finds the organisation and the month.
func (o *ofMonth) opened(ctx context.Context) (h *app.App, org flex.OrgID, m ledger.Month, err error) {
	m, err = ledger.ParseMonth(o.Month)
	if err != nil {
		return nil, org, m, err
	}

	h, err = o.open(ctx)
	if err != nil {
		return nil, org, m, err
	}

	org, err = orgIDNamed(ctx, h, o.Org)
	if err != nil {
		h.Close()
	}

	return h, org, m, err
}

func orgIDNamed(ctx context.Context, h *app.App, name string) (id flex.OrgID, err error) {
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		org, err := orgNamed(ctx, all, name)
		id = org.ID
		return err
	})
	return id, err
}

type bscRegister struct{ ofMonth }

// pointRow is a metering point as it is printed.
type pointRow struct {
	MPAN         string     `json:"mpan"`
	SiteID       string     `json:"site_id,omitempty"`
	From         time.Time  `json:"from"`
	To           *time.Time `json:"to"`
	Direction    string     `json:"direction,omitempty"`
	GSPGroup     string     `json:"gsp_group,omitempty"`
	SupplierMPID string     `json:"supplier_mpid,omitempty"`
	Enrolled     bool       `json:"enrolled"`
	HalfHourly   bool       `json:"settled_half_hourly"`
	Why          []string   `json:"not_settled_because"`
}

func pointRowOf(p records.Point) pointRow {
	r := pointRow{MPAN: p.MPAN, From: p.From, Enrolled: p.Enrolled, Why: market.PointIssues(&p)}
	if !p.Site.IsZero() {
		r.SiteID = p.Site.String()
	}

	if !p.To.IsZero() {
		r.To = &p.To
	}

	if m := p.Meter; m != nil {
		r.GSPGroup, r.SupplierMPID = m.GSPGroup, m.SupplierMPID
		r.HalfHourly, r.Direction = m.HalfHourly, "export"
		if m.Import {
			r.Direction = "import"
		}
	}

	return r
}

// Run prints the register.
func (o *bscRegister) Run(ctx context.Context, c console) error {
	h, org, m, err := o.opened(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	points, err := h.Market.Points(ctx, org, m)
	if err != nil {
		return err
	}

	rows := make([]pointRow, len(points))
	for i, p := range points {
		rows[i] = pointRowOf(p)
	}

	return list(c, o.JSON, rows, "MPAN\tFROM\tTO\tDIRECTION\tGSP GROUP\tSUPPLIER\tNOT SETTLED BECAUSE", func(r pointRow) []any {
		return []any{r.MPAN, r.From, r.To, r.Direction, r.GSPGroup, r.SupplierMPID, r.Why}
	})
}

type bscVolumes struct {
	ofMonth
	Out string `help:"Write to a file." required:"" placeholder:"FILE"`
}

// Run writes the volumes, and prints their sums.
func (o *bscVolumes) Run(ctx context.Context, c console) error {
	h, org, m, err := o.opened(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	err = writeWhole(o.Out, func(w io.Writer) error {
		_, err := h.Market.WriteVolumes(ctx, org, m, w)
		return err
	})
	if err != nil {
		return err
	}

	compared, err := h.Market.Compare(ctx, org, m, "", nil)
	if err != nil {
		return err
	}

	rows := make([]volumeRow, 0, len(compared.Groups))
	for _, group := range slices.Sorted(maps.Keys(compared.Groups)) {
		s := compared.Groups[group]
		rows = append(rows, volumeRow{group, s.HalfHours, s.Expected.KWh(), s.Own.KWh()})
	}

	return list(c, o.JSON, rows, "GSP GROUP, SUPPLIER\tHALF-HOURS\tEXPECTED KWH\tDELIVERED KWH", func(r volumeRow) []any {
		return []any{r.Group, r.HalfHours, thousandths(r.Expected), thousandths(r.Delivered)}
	})
}

// thousandths writes a number to three decimals, as kWh to the watt-hour.
func thousandths(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// volumeRow is the sums of a GSP group and supplier.
type volumeRow struct {
	Group     string  `json:"gsp_group_and_supplier"`
	HalfHours int     `json:"half_hours"`
	Expected  float64 `json:"expected_kwh"` // of half-hours that were settled
	Delivered float64 `json:"delivered_kwh"`
}

type bscImport struct {
	store
	Org   string `arg:"" help:"The organisation's name."`
	File  string `arg:"" help:"The report, CSV."`
	Named string `help:"The run: II, SF, R1, R2, R3, RF or DF." name:"run" required:"" enum:"II,SF,R1,R2,R3,RF,DF"`
}

// Run imports a report.
func (o *bscImport) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	org, err := orgIDNamed(ctx, h, o.Org)
	if err != nil {
		return err
	}

	var rows int
	err = h.Access.Act(ctx, records.Act{Who: commandLine, Act: "import settlement report", Subject: o.Org, Detail: o.Named}, func() error {
		rows, err = h.Market.ImportReport(ctx, org, o.Named, func() (io.ReadCloser, error) { return os.Open(o.File) })
		return err
	})
	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(c.out, "%d half-hours of run %s\n", rows, o.Named)
	return err
}

type bscCompare struct {
	ofMonth
	Named string `help:"The run; of each half-hour the latest report up to it counts." name:"run" default:"DF" enum:"II,SF,R1,R2,R3,RF,DF"`
	Out   string `help:"Write every half-hour to a file." placeholder:"FILE"`
}

// comparedRow is the sums of a comparison.
type comparedRow struct {
	Group      string         `json:"gsp_group_and_supplier"`
	HalfHours  int            `json:"half_hours"`
	Matched    int            `json:"matched"`
	Own        float64        `json:"own_kwh"`
	Settled    float64        `json:"settled_kwh"`
	Difference float64        `json:"difference_gbp"`
	Unpriced   int            `json:"unpriced"`
	Unmatched  map[string]int `json:"unmatched"`
}

func comparedRowOf(group string, s *market.Sums) comparedRow {
	return comparedRow{group, s.HalfHours, s.Matched, s.Own.KWh(), s.Settled.KWh(), float64(s.Worth) / 1e12, s.Unpriced, s.Unmatched}
}

// Run compares.
func (o *bscCompare) Run(ctx context.Context, c console) error {
	h, org, m, err := o.opened(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	var compared market.Comparison

	if o.Out == "" {
		compared, err = h.Market.Compare(ctx, org, m, o.Named, nil)
	} else {
		err = writeWhole(o.Out, func(w io.Writer) (err error) {
			compared, err = h.Market.Compare(ctx, org, m, o.Named, w)
			return err
		})
	}

	if err != nil {
		return err
	}

	var rows []comparedRow
	for _, group := range slices.Sorted(maps.Keys(compared.Groups)) {
		rows = append(rows, comparedRowOf(group, compared.Groups[group]))
	}

	rows = append(rows, comparedRowOf("all", &compared.All))
	if o.JSON {
		return c.json(map[string]any{"month": m.String(), "run": o.Named, "groups": rows})
	}

	return c.comparedTable(rows)
}

func (c console) comparedTable(rows []comparedRow) error {
	return table(c, rows, "GSP GROUP, SUPPLIER\tHALF-HOURS\tMATCHED\tOWN KWH\tSETTLED KWH\tDIFFERENCE GBP\tUNMATCHED", func(r comparedRow) []any {
		return []any{r.Group, r.HalfHours, r.Matched, thousandths(r.Own), thousandths(r.Settled), fmt.Sprintf("%.2f", r.Difference), whyText(r)}
	})
}

func whyText(r comparedRow) string {
	var whys []string
	for _, why := range slices.Sorted(maps.Keys(r.Unmatched)) {
		whys = append(whys, fmt.Sprintf("%d %s", r.Unmatched[why], why))
	}

	if r.Unpriced > 0 {
		whys = append(whys, fmt.Sprintf("%d without a settlement price", r.Unpriced))
	}

	return strings.Join(whys, "; ")
}
