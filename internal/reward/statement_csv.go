package reward

import (
	"io"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/settle"
)

// statementColumns are the columns of a statement as CSV. The first one is the kind of a row. Each
// kind leaves the columns of others empty, so that a sum over a column counts nothing twice.
var statementColumns = []string{
	"row", "line", "recorded_at", "from", "to", "description", "amount_pence", "balance_pence", "kwh",
	"transaction_id", "transaction_type", "status", "flex_event_id", "plug_session_id", "provisional",
	"label", "asset_id", "baseline_kwh", "metered_kwh", "half_hour_kwh", "change_kwh", "price_pence_per_kwh", "price_source", "price_role", "price_imported_at", "publication_id",
	"rate_pence_per_kwh", "user_share", "loss_factor", "paid_part", "rounding", "losses_passed_on",
	"carried_pence", "due_pence", "earlier_pence", "earlier_kwh",
	"month", "others_pence", "others_credited_pence", "gross_pence", "share_pence", "floored_pence", "credit_pence",
	"standard_error_kwh", "event_error_pence", "carried_in_pence", "lapsed_pence", "sum_pence", "standard_error_pence", "certainty", "carry_months",
	"threshold_pence", "month_credit_pence", "later_pence", "carried_out_pence",
}

// statementRow is a row by the names of its columns.
type statementRow map[string]any

// statementCSV writes a statement.
type statementCSV struct{ csv *csvfile.Writer }

func (w statementCSV) write(kind string, r statementRow) {
	cells := make([]any, len(statementColumns))
	for i, name := range statementColumns {
		cells[i] = r[name]
	}

	cells[0] = kind
	w.csv.Write(cells...)
}

// WriteCSV writes the statement as CSV: who pays whom, the opening balance, each line with its
// half-hours below it, the months that are netted with their events, and the total.
func (s *Statement) WriteCSV(out io.Writer) error {
	w := statementCSV{csvfile.NewWriter(out, statementColumns...)}
	for _, fact := range []struct{ name, text string }{
		{"number", s.Number}, {"payer", s.Payer.Name}, {"payer_address", s.Payer.Address}, {"payer_contact", s.Payer.Contact},
		{"site", s.Customer.SiteID.String()}, {"customer_address", s.Customer.Address.Reveal()}, {"customer_postcode", s.Customer.Postcode.Reveal()},
		{"rounding_rule", RoundingRule},
	} {
		w.write(fact.name, statementRow{"description": fact.text})
	}

	w.write("opening", statementRow{
		"from":          s.From.String(),
		"to":            s.To.String(),
		"balance_pence": int64(s.Opening),
	})

	for i := range s.Lines {
		w.line(i+1, &s.Lines[i])
	}

	for i := range s.Months {
		w.month(&s.Months[i])
	}

	w.write("total", statementRow{
		"recorded_at":   s.MadeAt,
		"from":          s.From.String(),
		"to":            s.To.String(),
		"amount_pence":  int64(s.Closing - s.Opening),
		"balance_pence": int64(s.Closing),
	})

	return w.csv.Flush()
}

// line writes a line, and below it its half-hours.
func (w statementCSV) line(number int, l *Line) {
	r := statementRow{
		"line":             number,
		"recorded_at":      l.At,
		"from":             l.Time.From,
		"to":               l.Time.To,
		"description":      l.Line(),
		"amount_pence":     int64(l.Amount),
		"balance_pence":    int64(l.Balance),
		"transaction_id":   l.ID.String(),
		"transaction_type": string(l.Kind),
		"status":           string(l.Status),
		"provisional":      l.Provisional,
		"label":            string(l.Label),
	}

	r.energy("kwh", l.Flex)
	r.energy("kwh", l.Creditable)

	if id := l.Transaction.Cause.FlexEvent; !id.IsZero() {
		r["flex_event_id"] = id.String()
	} else if id := l.Transaction.Cause.Session; !id.IsZero() {
		r["plug_session_id"] = id.String()
	}

	if c := l.Calculation; c != nil {
		r.calculation(c)
	}

	w.write("line", r)

	for i := range l.Periods {
		w.halfHour(number, &l.Periods[i])
	}
}

func (w statementCSV) halfHour(number int, p *Period) {
	r := statementRow{
		"line":         number,
		"from":         p.Start,
		"to":           p.Start.Add(flex.HalfHour),
		"price_source": p.Source,
	}

	r.energy("baseline_kwh", p.Baseline)
	r.energy("metered_kwh", p.Metered)
	r.energy("half_hour_kwh", p.Flex)
	r.energy("standard_error_kwh", p.Error)

	if p.Flex != nil || p.Change != 0 {
		r.energy("change_kwh", &p.Change)
	}

	if p.Price != nil {
		r["price_pence_per_kwh"] = exact(int64(*p.Price), 7)
	}

	if !p.Device.IsZero() {
		r["asset_id"] = p.Device.String()
	}

	if !p.Publication.IsZero() {
		r["publication_id"] = p.Publication.String()
		r["price_role"], r["price_imported_at"] = string(p.Role), p.Imported
	}

	w.write("half_hour", r)
}

func (w statementCSV) month(m *Month) {
	for _, e := range m.Events {
		r := statementRow{
			"month":             m.String(),
			"flex_event_id":     e.ID.String(),
			"from":              e.Span.From,
			"to":                e.Span.To,
			"gross_pence":       exact(int64(e.Gross), 4),
			"share_pence":       int64(e.Share),
			"credit_pence":      int64(e.Credited),
			"event_error_pence": exact(int64(e.Error), 3),
		}

		r.energy("half_hour_kwh", &e.Flex)
		w.write("month_event", r)
	}

	w.write("month", statementRow{
		"month":                m.String(),
		"description":          m.Note(),
		"share_pence":          int64(m.Early),
		"floored_pence":        int64(m.Dropped),
		"credit_pence":         int64(m.Credited),
		"carried_in_pence":     int64(m.CarriedIn),
		"lapsed_pence":         int64(m.Lapsed),
		"sum_pence":            int64(m.Sum()),
		"standard_error_pence": exact(int64(m.Error), 3),
		"certainty":            fraction(m.Certainty.Errors),
		"carry_months":         m.Certainty.Months,
		"threshold_pence":      exact(int64(m.Threshold), 3),
		"carried_out_pence":    int64(m.CarriedOut),
	})
}

// calculation writes the calculation of a line.
func (r statementRow) calculation(c *Calculation) {
	r["rounding"], r["losses_passed_on"] = c.Rounding.String(), c.ClawBack
	r["due_pence"], r["earlier_pence"] = int64(c.Due), int64(c.Earlier)
	r.energy("earlier_kwh", &c.Counted)

	if c.Rate != 0 {
		r["rate_pence_per_kwh"] = exact(int64(c.Rate), 6)
		return
	}

	r["user_share"], r["loss_factor"] = fraction(c.Share), fraction(c.LossFactor)
	r["paid_part"], r["carried_pence"] = fraction(c.PaidEarly), exact(int64(c.Carried), 10)

	if c.Others != nil {
		r["month"] = c.Month.String()
		r["others_pence"], r["others_credited_pence"] = int64(c.Others.Share), int64(c.Others.Credited)
		r["event_error_pence"], r["carried_in_pence"] = exact(int64(c.Error), 3), int64(c.Others.Carried)
		r["sum_pence"], r["standard_error_pence"] = int64(c.Sum()), exact(int64(c.Others.Error), 3)
		r["certainty"], r["threshold_pence"] = fraction(c.Others.Certainty), exact(int64(c.Threshold()), 3)
		r["month_credit_pence"], r["later_pence"] = int64(c.MonthCredit()), int64(c.Others.Later)
	}
}

func (r statementRow) energy(column string, e *flex.WattHours) {
	if e != nil {
		r[column] = exact(int64(*e), 3)
	}
}

func fraction(p settle.Parts) csvfile.Number { return exact(int64(p), 6) }

// exact writes n times 10 to the power of -places without loss.
func exact(n int64, places int) csvfile.Number {
	return csvfile.Number(decimalText(n, places))
}
