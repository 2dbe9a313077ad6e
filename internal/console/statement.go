package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/reward"
)

// statementPage is a site's statement as its user has it, to be printed.
type statementPage struct {
	Org       flex.Org
	Site      flex.SiteID
	Statement reward.Statement
	Rule      string
	CSV       string
	JSON      string
}

// statementSpan reads the days of the requested statement.
func statementSpan(r *request) (reward.StatementSpan, error) {
	q := r.URL.Query()
	var span reward.StatementSpan
	span.Month = q.Get("month")

	var err error
	for _, f := range []struct {
		to   *flex.Day
		text string
	}{{&span.From, q.Get("from")}, {&span.To, q.Get("to")}} {
		if f.text == "" {
			continue
		}

		*f.to, err = flex.ParseDay(f.text)
		if err != nil {
			return span, flex.Fail(
				flex.Malformed,
				"a date is written YYYY-MM-DD",
			)
		}
	}

	if text := q.Get("tax_year"); text != "" {
		span.TaxYear, err = strconv.Atoi(text)
		if err != nil {
			return span, flex.Fail(
				flex.Malformed,
				"a tax year is written as the year in which it begins",
			)
		}
	}

	return span, nil
}

// statement shows a site's statement, or sends it as CSV or JSON.
func (s *Server) statement(r *request) (view, error) {
	if err := r.onlyFilters("from", "to", "month", "tax_year"); err != nil {
		return view{}, err
	}

	id, org, err := pathID(r, "site", s.Registry.SiteOrg)
	if err != nil {
		return view{}, err
	}

	span, err := statementSpan(r)
	if err != nil {
		return view{}, err
	}

	from, to, err := span.Days()
	if err != nil {
		return view{}, err
	}

	p := &statementPage{Rule: reward.RoundingRule, Site: id}
	p.Org, err = s.Registry.Org(r.Context(), org)
	if err != nil {
		return view{}, err
	}

	p.Statement, err = s.Reward.Statement(
		r.Context(),
		p.Org.ID,
		p.Site,
		from,
		to,
	)
	if err != nil {
		return view{}, err
	}

	return p.view(r)
}

// view returns the page, or the requested file.
func (p *statementPage) view(r *request) (view, error) {
	st := &p.Statement
	name := "statement-" + st.From.String() + "-" + st.To.String()

	switch r.URL.Path[len(r.URL.Path)-4:] {
	case ".csv":
		var b bytes.Buffer
		if err := st.WriteCSV(&b); err != nil {
			return view{}, err
		}
		return view{file: &download{
			name + ".csv",
			"text/csv; charset=utf-8",
			b.Bytes(),
		}}, nil

	case "json":
		b, err := json.MarshalIndent(contract.Statement(st), "", "  ")
		return view{file: &download{name + ".json", "application/json", b}}, err
	}

	path := "/console/sites/" + p.Site.String()
	tail := "?" +
		url.Values{
			"from": {st.From.String()},
			"to":   {st.To.String()},
		}.Encode()

	p.CSV, p.JSON = path+"/statement.csv"+tail, path+"/statement.json"+tail
	title := fmt.Sprintf("Statement, %s to %s", date(st.From), date(st.To))

	return view{
		page:   "statement",
		title:  title,
		crumbs: []crumb{{p.Org.Name, "/console/assets?org=" + p.Org.ID.String()}, {"Site", path}},
		data:   p,
		record: contract.Statement(st),
	}, nil
}

// exactKWh writes an energy to the watt-hour, or a dash for none.
func exactKWh(v any) string {
	switch e := v.(type) {
	case flex.WattHours:
		return strconv.FormatFloat(e.KWh(), 'f', 3, 64) + " kWh"
	case *flex.WattHours:
		if e != nil {
			return exactKWh(*e)
		}
	}

	return "–"
}
