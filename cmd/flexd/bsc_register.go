package main

import (
	"context"
	"os"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/market"
)

type bscRegister struct{ ofMonth }

// pointRow is a metering point as it is printed, for a time in which nothing of it changed.
type pointRow struct {
	MPAN         string     `json:"mpan"`
	ExportMPAN   string     `json:"export_mpan,omitempty"`
	BMUnit       string     `json:"bm_unit,omitempty"`
	SiteID       string     `json:"site_id,omitempty"`
	From         time.Time  `json:"from"`
	To           *time.Time `json:"to"`
	Direction    string     `json:"direction,omitempty"`
	GSPGroup     string     `json:"gsp_group,omitempty"`
	SupplierMPID string     `json:"supplier_mpid,omitempty"`
	Largest      *float64   `json:"largest_export_kwh"`
	Enrolled     bool       `json:"enrolled"`
	HalfHourly   bool       `json:"settled_half_hourly"`
	Eligible     string     `json:"eligible"` // yes, no, not known
	WhyNot       []string   `json:"not_eligible_because"`
	Why          []string   `json:"not_settled_because"`
}

// pointRows returns a point's rows that overlap a time. There is one for each part in which
// its pair is the same.
func pointRows(
	p *market.Point,
	span flex.Span,
	limit flex.Optional[flex.WattHours],
) []pointRow {
	at := p.From

	var rows []pointRow
	for {
		next := p.To // when something changes; zero: never
		for _, pair := range p.Pairs {
			for _, edge := range []time.Time{pair.From, pair.To} {
				if edge.After(at) && (next.IsZero() || edge.Before(next)) {
					next = edge
				}
			}
		}

		if next.IsZero() || next.After(span.From) {
			rows = append(rows, pointRowAt(p, at, next, limit))
		}

		ended := !p.To.IsZero() && !next.Before(p.To)
		if next.IsZero() || ended || !next.Before(span.To) {
			return rows
		}

		at = next
	}
}

func pointRowAt(
	p *market.Point,
	from, to time.Time,
	limit flex.Optional[flex.WattHours],
) pointRow {
	r := pointRow{
		MPAN:     p.MPAN,
		From:     from,
		Enrolled: p.Enrolled,
		Why:      market.PointIssues(&p.MeteringPoint),
	}

	r.GSPGroup, r.SupplierMPID = p.Place(from)
	r.Eligible, r.WhyNot = p.Eligible(from, limit)

	if !p.Site.IsZero() {
		r.SiteID = p.Site.String()
	}

	if !to.IsZero() {
		r.To = &to
	}

	if m := p.Meter; m != nil {
		r.HalfHourly, r.Direction = m.HalfHourly, "export"
		if m.Import {
			r.Direction = "import"
		}
	}

	if pair := p.At(from); pair != nil {
		r.ExportMPAN, r.BMUnit = pair.Export, pair.BMUnit
		if pair.LargestExport.Given {
			kwh := pair.LargestExport.Value.KWh()
			r.Largest = &kwh
		}
	}

	return r
}

// Run prints the register.
func (o *bscRegister) Run(ctx context.Context, c console) error {
	h, org, m, err := o.openMonth(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	points, err := h.Market.Points(ctx, org, m)
	if err != nil {
		return err
	}

	limit, err := h.Market.ExportLimit(ctx, org)
	if err != nil {
		return err
	}

	rows := []pointRow{} // none is an empty list in JSON, too
	for i := range points {
		rows = append(
			rows,
			pointRows(&points[i], market.MonthSpan(m), limit)...,
		)
	}

	return list(
		c,
		o.JSON,
		rows,
		"MPAN\tEXPORT MPAN\tBM UNIT\tFROM\tTO\tDIRECTION\tGSP GROUP\tSUPPLIER\tLARGEST EXPORT KWH\tELIGIBLE\tNOT ELIGIBLE OR SETTLED BECAUSE",
		func(r pointRow) []any {
			largest := ""
			if r.Largest != nil {
				largest = thousandths(*r.Largest)
			}

			return []any{
				r.MPAN,
				r.ExportMPAN,
				r.BMUnit,
				r.From,
				r.To,
				r.Direction,
				r.GSPGroup,
				r.SupplierMPID,
				largest,
				r.Eligible,
				r.reasons(),
			}
		},
	)
}

// reasons returns what prevents trading and settling. A reason that prevents both is returned
// once.
func (r *pointRow) reasons() []string {
	whys := slices.Clone(r.WhyNot)
	for _, reason := range r.Why {
		if !slices.Contains(whys, reason) {
			whys = append(whys, reason)
		}
	}

	return whys
}

type bscPairs struct {
	store
	form
	Org   string `arg:"" help:"The organisation's name."`
	File  string `arg:"" help:"The list, CSV. It replaces the previous one."`
	Empty bool   `help:"Accept a list without a row, which removes the previous one."`
}

// Run imports the list of pairs.
func (o *bscPairs) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	org, err := orgIDNamed(ctx, h, o.Org)
	if err != nil {
		return err
	}

	f, err := os.Open(o.File)
	if err != nil {
		return err
	}

	defer f.Close()

	var n int
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org,
			Act:     "import pairs of metering points",
			Subject: o.Org,
		},
		func() error {
			n, err = h.Market.ImportPairs(ctx, org, f, o.Empty)
			return err
		},
	)

	if err != nil {
		return err
	}

	return o.print(c, fields{"imported": n}, "%d pairs of metering points\n", n)
}
