package console

import (
	"cmp"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/reward"
)

// defaultWord is the default in a form of terms, as an empty value is.
const defaultWord = "default"

// termsPage lists an organisation's terms, with the first day of each value.
type termsPage struct {
	ofOrg
	Today  flex.Day
	Terms  []termLine
	Export Export
}

type termLine struct {
	reward.TermSetting
	Values []reward.TermValue
}

// Shown is a value as it is printed.
func (l termLine) Shown(value string) string {
	return cmp.Or(value, l.Default+" (default)")
}

func (s *Server) terms(r *request) (view, error) {
	if err := r.onlyFilters("org"); err != nil {
		return view{}, err
	}

	p := &termsPage{Export: r.exports()}
	err := readFilter(&p.Org, r.URL.Query().Get("org"), "organisation")
	if err != nil {
		return view{}, err
	}

	if err := p.choose(s, r); err != nil {
		return view{}, err
	}

	if len(p.Orgs) > 0 {
		terms, err := s.Reward.Terms(r.Context(), p.Org)
		if err != nil {
			return view{}, err
		}

		p.Today = terms.Today
		for _, t := range reward.TermSettings() {
			p.Terms = append(p.Terms, termLine{t, terms.History(t.Name)})
		}
	}

	return view{
		page:   "terms",
		title:  "Terms",
		crumbs: termsCrumbs(p.Org)[:1],
		data:   p,
		table:  p.table(),
	}, nil
}

func termsCrumbs(org flex.OrgID) []crumb {
	tail := "?org=" + org.String()
	return []crumb{
		{"Settlement and rewards", "/console/settlement" + tail},
		{"Terms", "/console/settlement/terms" + tail},
	}
}

func (p *termsPage) table() *table {
	t := &table{
		Name:    "terms",
		Columns: []string{"name", "value", "from_day", "holds_today", "default", "set_at", "set_by"},
	}

	for _, l := range p.Terms {
		for _, v := range l.Values {
			t.add(
				l.Name,
				v.Value,
				dayText(v.From),
				v.InForce,
				l.Default,
				v.SetAt,
				v.SetBy,
			)
		}
	}

	return t
}

// dayText writes a day, and nothing for the beginning.
func dayText(d flex.Day) string {
	if d == (flex.Day{}) {
		return ""
	}
	return d.String()
}

// termChange is a change of a term, as its form has it.
type termChange struct {
	Org              flex.OrgID
	Name, Value, Day string // the empty day is the first that may be
	values           map[string]string
	from             flex.Day
}

func readTermChange(r *request) (termChange, error) {
	c := termChange{
		Name:  r.PostFormValue("name"),
		Value: strings.TrimSpace(r.PostFormValue("value")),
		Day:   r.PostFormValue("from"),
	}

	if err := readID(&c.Org, r.PathValue("org"), "organisation"); err != nil {
		return c, err
	}

	value := c.Value
	if value == defaultWord {
		value = ""
	}

	c.values = map[string]string{c.Name: value}
	if c.Day == "" {
		return c, nil
	}

	var err error
	c.from, err = flex.ParseDay(c.Day)
	if err != nil {
		return c, flex.Fail(flex.Malformed, "a day is written YYYY-MM-DD")
	}

	return c, nil
}

// termPreviewPage previews a change of a term, with the form that makes it.
type termPreviewPage struct {
	termChange
	reward.TermsPreview
	Was string
	Is  string
}

// previewTerm shows the effect of a change and changes nothing.
func (s *Server) previewTerm(r *request) (view, error) {
	c, err := readTermChange(r)
	if err != nil {
		return view{}, err
	}

	p := termPreviewPage{termChange: c}
	p.TermsPreview, err = s.Reward.PreviewTerms(
		r.Context(),
		c.Org,
		c.values,
		c.from,
	)
	if err != nil {
		return view{}, err
	}

	for _, t := range reward.TermSettings() {
		if l := (termLine{TermSetting: t}); t.Name == c.Name {
			p.Was, p.Is = l.Shown(p.Before[c.Name]), l.Shown(c.values[c.Name])
		}
	}

	return view{
		page:   "termpreview",
		title:  "A change of " + c.Name,
		crumbs: termsCrumbs(c.Org),
		data:   p,
	}, nil
}

// setTerm sets a term from a day on. The audit log stores the reason.
func (s *Server) setTerm(r *request) (view, error) {
	reason, err := confirmedDecision(r, "")
	if err != nil {
		return view{}, err
	}

	c, err := readTermChange(r)
	if err != nil {
		return view{}, err
	}

	detail := c.Name + "=" + cmp.Or(c.values[c.Name], defaultWord) + " from " +
		cmp.Or(c.Day, "the first day that may be") + ": " + reason

	err = s.act(
		r,
		access.Action{
			Act:     "set terms",
			Org:     c.Org,
			Subject: c.Name,
			Detail:  detail,
		},
		func() error {
			_, err := s.Reward.SetTerms(
				r.Context(),
				c.Org,
				c.values,
				c.from,
				r.operator.Name,
			)

			return err
		},
	)

	return view{to: "/console/settlement/terms?org=" + c.Org.String() +
		"&done=terms"}, err
}
