package console

import (
	"io"
	"strconv"
	"strings"

	"flexd/internal/access"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/market"
)

// safetyPage shows what stops or limits all of flexd.
type safetyPage struct {
	delivery.Safety
	Caps      []capsLine
	ReasonMax int
	Two       bool   // whether two people end every halt
	Asked     string // who asked for the end of the halt, "" for nobody
	Self      string
	Parts     []partHalted
}

// partHalted is a halt of a part.
type partHalted struct {
	delivery.PartHalted
	EndedBy string // who asked for its end, "" for nobody
}

// haltPage previews a halt of a part.
type haltPage struct {
	delivery.HaltPreview
	Scope     string `json:"scope"`
	ReasonMax int    `json:"-"`
	Two       bool   `json:"needs_two"` // whether two people end every halt
}

// safetyJSON is the page for programs.
type safetyJSON struct {
	delivery.Safety
	Caps []capsJSON `json:"caps"`
}

func (s *Server) safety(r *request) (view, error) {
	p := safetyPage{
		ReasonMax: delivery.ReasonMax,
		Two:       s.ResumeByTwo,
		Self:      r.operator.Name,
	}

	var err error
	p.Safety, err = s.Push.Safety(r.Context())
	if err == nil {
		p.Caps, err = s.capsLines(r)
	}

	if p.Halted != nil && p.Halted.EndRequested(s.Operations.Now()) {
		p.Asked = p.Halted.AskedBy
	}
	for _, part := range p.Safety.Parts {
		line := partHalted{PartHalted: part}
		if part.EndRequested(s.Operations.Now()) {
			line.EndedBy = part.AskedBy
		}
		p.Parts = append(p.Parts, line)
	}

	record := safetyJSON{Safety: p.Safety, Caps: []capsJSON{}}
	for _, c := range p.Caps {
		record.Caps = append(record.Caps, c.json())
	}

	return view{
		page:   "safety",
		title:  "Safety",
		data:   p,
		record: record,
	}, err
}

// haltScope reads from a form what is to be halted: the scope as text, or its parts. A form
// with neither means everything.
func haltScope(r *request) (delivery.HaltScope, string, error) {
	text := r.PostFormValue("scope")
	kind, org := r.PostFormValue("kind"), r.PostFormValue("org")
	name := strings.TrimSpace(r.PostFormValue("name"))

	switch kind {
	case "":
	case "organisation":
		text = kind + "/" + org
	case "endpoint":
		text = kind + "/" + org + "/" + name
	default:
		text = kind + "/" + name
	}

	var scope delivery.HaltScope
	if text == "" {
		return scope, "", nil
	}

	scope, err := delivery.ParseHaltScope(text)

	return scope, text, err
}

// previewHalt shows the effect of a halt of a part and halts nothing.
func (s *Server) previewHalt(r *request) (view, error) {
	scope, _, err := haltScope(r)
	if err != nil {
		return view{}, err
	}

	p := haltPage{
		Scope:     scope.String(),
		ReasonMax: delivery.ReasonMax,
		Two:       s.ResumeByTwo,
	}

	p.HaltPreview, err = s.Push.PreviewHalt(r.Context(), scope)

	return view{
		page:   "halt",
		title:  "Halt a part",
		crumbs: []crumb{{"Safety", "/console/safety"}},
		data:   p,
		record: p,
	}, err
}

func (s *Server) halt(r *request) (view, error) {
	scope, subject, err := haltScope(r)
	if err != nil {
		return view{}, err
	}

	order := delivery.HaltOrder{
		Scope:    scope,
		Operator: r.operator.Name,
		Reason:   strings.TrimSpace(r.PostFormValue("reason")),
		Two:      s.ResumeByTwo || r.PostFormValue("two") != "",
	}

	done := "halted"
	if subject != "" {
		done = "parthalted"
	}

	a := access.Action{
		Act:     "halt pushes",
		Org:     scope.Org,
		Subject: subject,
		Detail:  order.Reason,
	}

	err = s.act(r, a, func() error { return s.Push.Halt(r.Context(), order) })

	return view{to: "/console/safety?done=" + done}, err
}

func (s *Server) resume(r *request) (view, error) {
	scope, subject, err := haltScope(r)
	if err != nil {
		return view{}, err
	}

	isOver := false
	a := access.Action{
		Act:     "resume pushes",
		Org:     scope.Org,
		Subject: subject,
	}

	err = s.Access.ActWithDetail(
		r.Context(),
		a.By(r.operator.Name, r.from),
		func() (string, error) {
			var err error
			isOver, err = s.Push.ResumeBy(r.Context(), scope, r.operator.Name)
			var detail string
			if err == nil && !isOver {
				detail = "asked for: somebody else ends the halt"
			}

			return detail, err
		},
	)

	if !isOver {
		return view{to: "/console/safety?done=resumeasked"}, err
	}

	return view{to: "/console/safety?done=resumed"}, err
}

// foreseenPage shows the effect of a file of prices.
type foreseenPage struct {
	HalfHours int
	Span      flex.Span
	Lines     []control.OrgForeseen
	Changed   int
}

// foresee counts the schedules that a file of prices would change, and stores nothing.
func (s *Server) foresee(r *request) (view, error) {
	text := r.PostFormValue("prices")
	if f, _, err := r.FormFile("file"); err == nil {
		defer f.Close()

		b, err := io.ReadAll(f) // bounded with the whole form
		if err != nil {
			return view{}, flex.Fail(
				flex.TooLarge,
				"the file is too long for a dry run: %d bytes at most",
				formMax,
			)
		}

		text = string(b)
	}

	prices, err := market.ReadPrices(strings.NewReader(text))
	if err != nil {
		return view{}, err
	}

	p := foreseenPage{
		HalfHours: len(prices),
		Span: flex.Span{
			From: prices[0].Period.Start(),
			To:   prices[len(prices)-1].Period.End(),
		},
	}

	p.Lines, err = s.Control.ForeseeAll(r.Context(), prices)
	for _, l := range p.Lines {
		p.Changed += l.Changed
	}

	return view{
		page:   "foreseen",
		title:  "Dry run of prices",
		crumbs: []crumb{{"Safety", "/console/safety"}},
		data:   p,
	}, err
}

// number reads a number of a form, which may be left empty for none.
func number(text, label string, most float64) (float64, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}

	v, err := strconv.ParseFloat(text, 64)
	within := v >= 0 && v <= most // NaN is not
	if err != nil || !within {
		return 0, flex.Fail(
			flex.Malformed,
			"%s is %q: give a number from 0 to %v, or nothing for none",
			label,
			text,
			most,
		)
	}

	return v, nil
}
