package portal

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
)

// statementMonths is how many months a statement is offered of by one click.
const statementMonths = 13

// period is a month or a tax year that a statement is offered of.
type period struct {
	Name string
	URL  string // behind the page's own address
}

// statement shows what was earned in some days, and why, to be read or printed.
func (s *Server) statement(r *request) error {
	st, err := s.readStatement(r)
	if err != nil {
		return err
	}

	query := "?" +
		url.Values{
			"from": {st.From.String()},
			"to":   {st.To.String()},
		}.Encode()

	return s.show(r, http.StatusOK, "statement", map[string]any{
		"Statement": st,
		"Periods":   r.speech.periodsBefore(flex.DayAt(st.MadeAt)),
		"Query":     query,
		"Rule":      reward.RoundingRule,
	})
}

// statementCSV gives the statement away as CSV.
func (s *Server) statementCSV(r *request) error {
	st, err := s.readStatement(r)
	if err != nil {
		return err
	}

	var b bytes.Buffer
	if err := st.WriteCSV(&b); err != nil {
		return err
	}

	return writeStatement(r, &st, "csv", "text/csv; charset=utf-8", b.Bytes())
}

// statementJSON gives the statement away as JSON.
func (s *Server) statementJSON(r *request) error {
	st, err := s.readStatement(r)
	if err != nil {
		return err
	}

	b, err := json.MarshalIndent(contract.Statement(&st), "", "  ")
	if err != nil {
		return err
	}

	return writeStatement(r, &st, "json", "application/json", b)
}

// writeStatement answers with a statement as a file.
func writeStatement(
	r *request,
	st *reward.Statement,
	ending, kind string,
	b []byte,
) error {
	h := r.w.Header()
	h.Set("Content-Type", kind)
	h.Set(
		"Content-Disposition",
		`attachment; filename="statement-`+st.From.String()+"-"+
			st.To.String()+"."+ending+`"`,
	)

	r.w.Write(b)

	return nil
}

// readStatement reads the statement that is asked for.
func (s *Server) readStatement(r *request) (reward.Statement, error) {
	var st reward.Statement
	if r.visit.HideTransactions {
		return st, flex.Fail(flex.NotFound, "this page is not known")
	}

	q := r.URL.Query()
	span := reward.StatementSpan{Month: q.Get("month")}

	var err error
	for name, into := range map[string]*flex.Day{
		"from": &span.From,
		"to":   &span.To,
	} {
		text := q.Get(name)
		if text == "" {
			continue
		}

		*into, err = flex.ParseDay(text)
		if err != nil {
			return st, flex.Fail(
				flex.Malformed,
				"a day is written as in 2026-01-31",
			)
		}
	}

	if text := q.Get("tax_year"); text != "" {
		span.TaxYear, err = strconv.Atoi(text)
		if err != nil {
			return st, flex.Fail(
				flex.Malformed,
				"a tax year is written as in 2026",
			)
		}
	}

	from, to, err := span.Days()
	if err != nil {
		return st, err
	}

	return s.Reward.Statement(
		r.Context(),
		r.visit.OrgID,
		r.visit.SiteID,
		from,
		to,
	)
}

// periodsBefore lists the tax years and months that a statement is offered of, newest first.
func (l *speech) periodsBefore(today flex.Day) []period {
	year := today.Year
	if from, _ := reward.TaxYear(year); today.Start().Before(from.Start()) {
		year--
	}

	var ps []period
	for _, y := range []int{year, year - 1} {
		from, to := reward.TaxYear(y)
		name := l.say("Tax year {1} to {2}", l.long(from), l.long(to))
		ps = append(ps, period{name, "?tax_year=" + strconv.Itoa(y)})
	}

	m := ledger.MonthOf(today)
	for range statementMonths {
		ps = append(ps, period{
			l.when(m.First().Start(), flex.London, "January 2006"),
			"?month=" + m.String(),
		})

		m = ledger.MonthOf(m.First().Add(-1))
	}

	return ps
}
