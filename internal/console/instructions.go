package console

import (
	"strconv"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/settle"
)

const instructionsPath = "/console/instructions"

// instructionsPage lists an organisation's instructions, with a form for another.
type instructionsPage struct {
	control.InstructionsView
	Services []string
	Next     string // the page that follows, if there is one
	Export   Export
}

func (s *Server) instructions(r *request) (view, error) {
	p := &instructionsPage{
		Services: control.InstructionServices,
		Export:   r.exports(),
	}

	var org flex.OrgID
	if err := readFilter(
		&org,
		r.URL.Query().Get("org"),
		"organisation",
	); err != nil {
		return view{}, err
	}

	if err := r.onlyFilters("org"); err != nil {
		return view{}, err
	}

	var before flex.InstructionID
	if err := readFilter(
		&before,
		r.URL.Query().Get("before"),
		"instruction",
	); err != nil {
		return view{}, err
	}

	var err error
	p.InstructionsView, err = s.Control.InstructionsOf(
		r.Context(),
		org,
		before,
		r.limit(),
	)

	if !p.InstructionsView.Next.IsZero() {
		p.Next = r.with("before", p.InstructionsView.Next.String())
	}

	return view{
		page:  "instructions",
		title: "Instructions",
		data:  p,
		table: p.table(),
		next:  p.Next,
	}, err
}

func (p *instructionsPage) table() *table {
	t := &table{
		Name: "instructions",
		Columns: []string{
			"id",
			"state",
			"start",
			"end",
			"target",
			"service",
			"reason",
			"who",
			"made_at",
			"stopped_at",
			"stopped_by",
		},
	}

	for _, l := range p.Lines {
		t.add(
			l.ID.String(),
			string(l.State),
			l.From,
			l.To,
			l.Goal,
			l.Service,
			l.Reason,
			l.Who,
			l.MadeAt,
			l.StoppedAt,
			l.StoppedBy,
		)
	}

	return t
}

// instructionForm has the values of the form for an instruction.
type instructionForm struct {
	Org      flex.OrgID
	Kind, KW string // less, more or limit
	Group    string
	GSPGroup string
	From, To string // local time in London
	Service  string
	Price    string
	Note     string
	Unfair   bool
}

func readInstruction(r *request) (instructionForm, control.Order, error) {
	value := func(name string) string {
		return strings.TrimSpace(r.PostFormValue(name))
	}

	f := instructionForm{
		Kind:     value("kind"),
		KW:       value("kw"),
		Group:    value("group"),
		GSPGroup: value("gsp_group"),
		From:     value("from"),
		To:       value("to"),
		Service:  value("service"),
		Price:    value("price"),
		Note:     value("reason"),
		Unfair:   value("unfair") != "",
	}

	var in control.Order
	if err := readID(&f.Org, value("org"), "organisation"); err != nil {
		return f, in, err
	}

	in = control.Order{
		Group:    f.Group,
		GSPGroup: f.GSPGroup,
		Service:  f.Service,
		Reason:   f.Note,
		Unfair:   f.Unfair,
		Who:      r.operator.Name,
	}

	if f.Note == "" || len(f.Note) > reasonMax {
		return f, in, flex.Fail(
			flex.Malformed,
			"give a reason of 1 to %d bytes",
			reasonMax,
		)
	}

	if err := f.target(&in); err != nil {
		return f, in, err
	}

	var err error
	in.From, err = londonTime(f.From)
	if err == nil {
		in.To, err = londonTime(f.To)
	}

	return f, in, err
}

// target reads the target of the form.
func (f *instructionForm) target(in *control.Order) error {
	// an empty field would be a limit of nothing
	if f.KW == "" {
		return flex.Fail(flex.Malformed, "give the power in kW")
	}

	watts, err := number(f.KW, "the power in kW", 1e7)
	if err != nil {
		return err
	}

	pays, err := number(f.Price, "the price in £/MWh", settle.MaxPrice.GBPPerMWh())
	if err != nil {
		return err
	}

	in.Price = flex.FromGBPPerMWh(pays)
	switch f.Kind {
	case "less":
		in.Change = -flex.FromKW(watts)

	case "more":
		in.Change = flex.FromKW(watts)

	case "limit":
		in.Limit = new(flex.FromKW(watts))

	default:
		return flex.Fail(
			flex.Malformed,
			"choose whether less or more is to be drawn, or not above a limit",
		)
	}

	return nil
}

// londonTime reads a local time of a form. A time that is skipped when the clocks go forward
// is refused, because it would be read as another time.
func londonTime(text string) (time.Time, error) {
	const layout = "2006-01-02T15:04"
	at, err := time.ParseInLocation(layout, text, flex.London)
	if err != nil {
		return at, flex.Fail(flex.Malformed, "%q is no instant", text)
	}

	if parsed, _ := time.Parse(layout, text); at.Format(layout) != parsed.Format(layout) {
		return at, flex.Fail(
			flex.Malformed,
			"there is no %s: the clocks go forward then, by an hour",
			text,
		)
	}

	return at.UTC(), nil
}

// checkConfirmation refuses a form without the word that must be typed to confirm.
func checkConfirmation(r *request, expected string) error {
	if !strings.EqualFold(strings.TrimSpace(r.PostFormValue("typed")), expected) {
		return flex.Fail(
			flex.Malformed,
			"type %q to say that you mean it",
			expected,
		)
	}

	return nil
}

// previewPage is the preview of an instruction.
type previewPage struct {
	*control.Preview
	Form instructionForm
}

// Percent is how much of the target is reached.
func (p previewPage) Percent() string {
	return strconv.FormatFloat(100*p.Reached(), 'f', 0, 64)
}

// instructionPreview shows the effect of an instruction, and changes nothing.
func (s *Server) instructionPreview(r *request) (view, error) {
	f, in, err := readInstruction(r)
	if err != nil {
		return view{}, err
	}

	p, err := s.Control.PreviewInstruction(r.Context(), f.Org, in.Instruction())

	return view{
		page:   "instructionpreview",
		title:  "Preview",
		crumbs: []crumb{{"Instructions", instructionsPath}},
		data:   previewPage{p, f},
	}, err
}

// sendInstruction sends an instruction, if the word was typed.
func (s *Server) sendInstruction(r *request) (view, error) {
	if err := checkConfirmation(r, "send"); err != nil {
		return view{}, err
	}

	f, in, err := readInstruction(r)
	if err != nil {
		return view{}, err
	}

	var p *control.Preview
	err = s.act(
		r,
		access.Action{
			Act:    "send instruction",
			Org:    f.Org,
			Detail: in.Goal() + ": " + in.Reason,
		},
		func() error {
			p, err = s.Control.SendInstructionOnce(
				r.Context(),
				f.Org,
				in.Instruction(),
			)

			return err
		},
	)

	if err != nil {
		return view{}, err
	}

	return view{to: instructionsPath + "/" + p.ID.String() +
		"?done=instructed"}, nil
}

// instructionPage is an instruction's report.
type instructionPage struct {
	*control.InstructionReport
	State  control.InstructionState
	Export Export
	Names  map[flex.AssetID]string // of the assets that are there
}

// Binds reports whether it can be stopped.
func (p instructionPage) Binds() bool { return p.State.Binds() }

// Released is the number of the called assets that were released.
func (p instructionPage) Released() int {
	n := 0
	for i := range p.Assets {
		if !p.Assets[i].ReleasedAt.IsZero() {
			n++
		}
	}

	return n
}

// AskedIn reports whether the instruction applies in a half-hour: one that is neither after
// the window nor after the instruction was stopped.
func (p instructionPage) AskedIn(s control.ReportSlot) bool {
	stopped := !p.StoppedAt.IsZero() && s.To.After(p.StoppedAt)
	return s.From.Before(p.Instruction.To) && !stopped
}

// Notice is the most important message about the instruction; empty for none.
func (p instructionPage) Notice() string {
	called := len(p.Assets) - p.Released()
	switch {
	case p.Binds() && called == 0:
		return "No asset is called now: nothing comes of it."
	case p.State == control.InstructionStopped && !p.StoppedAt.After(p.From):
		return "It was stopped before it began: nobody was called in its time."
	case p.State == control.InstructionStopped:
		return "Nothing is asked for from when it was stopped: what is expected then is the plans without it."
	}

	return ""
}

// NobodyNext explains the consequence if no asset was called.
func (p instructionPage) NobodyNext() string {
	if p.Binds() {
		return "A preview of the same says why. Assets that can bring something later are called until it ends."
	}

	return "Nothing came of it."
}

func (s *Server) instruction(r *request) (view, error) {
	id, org, err := pathID(r, "instruction", s.Control.InstructionOrg)
	if err != nil {
		return view{}, err
	}

	report, err := s.Control.ReportInstruction(r.Context(), org, id)
	if err != nil {
		return view{}, err
	}

	path := instructionsPath + "/" + id.String() + "/report"
	p := instructionPage{
		report,
		control.StateOf(&report.Instruction, report.At),
		Export{path + ".csv", path + ".json"},
		map[flex.AssetID]string{},
	}

	if !r.isPlain() {
		err = s.nameAssets(r, &p)
	}

	return view{
		page:   "instruction",
		title:  "Instruction",
		crumbs: []crumb{{"Instructions", instructionsPath}},
		data:   p,
		table:  reportTable(report),
		record: contract.InstructionReport(report, false),
	}, err
}

// nameAssets sets the names of the called assets; of very many, the first ones.
func (s *Server) nameAssets(r *request, p *instructionPage) error {
	var ids []flex.AssetID
	for _, a := range p.Assets {
		ids = append(ids, a.AssetID)
	}

	found, err := s.Registry.AssetsByID(r.Context(), ids[:min(len(ids), partMax)])
	for _, a := range found {
		p.Names[a.ID] = a.ExternalID
	}

	return err
}

// reportTable is a report's half-hours, as the interface has them.
func reportTable(report *control.InstructionReport) *table {
	t := &table{
		Name: "instruction",
		Columns: []string{
			"start",
			"end",
			"asked_kwh",
			"baseline_kwh",
			"expected_kwh",
			"short_kwh",
			"num_metered",
			"metered_kwh",
			"metered_baseline_kwh",
		},
	}

	for _, h := range contract.InstructionReport(report, false).HalfHours {
		var metered, base any
		if h.MeteredKWh != nil {
			metered, base = *h.MeteredKWh, *h.MeteredBaselineKWh
		}

		t.add(
			h.StartTimestamp.Time,
			h.EndTimestamp.Time,
			h.AskedKWh,
			h.BaselineKWh,
			h.ExpectedKWh,
			h.ShortKWh,
			h.NumMetered,
			metered,
			base,
		)
	}

	return t
}

// stopInstruction stops an instruction, if the word was typed.
func (s *Server) stopInstruction(r *request) (view, error) {
	if err := checkConfirmation(r, "stop"); err != nil {
		return view{}, err
	}

	id, org, err := pathID(r, "instruction", s.Control.InstructionOrg)
	if err != nil {
		return view{}, err
	}

	err = s.act(
		r,
		access.Action{
			Act:     "stop instruction",
			Org:     org,
			Subject: id.String(),
		},
		func() error {
			_, err := s.Control.StopInstruction(
				r.Context(),
				org,
				id,
				r.operator.Name,
			)

			return err
		},
	)

	return view{to: instructionsPath + "/" + id.String() + "?done=stopped"}, err
}

// stopInstructions stops all of an organisation's instructions, if the word was typed.
func (s *Server) stopInstructions(r *request) (view, error) {
	if err := checkConfirmation(r, "stop all"); err != nil {
		return view{}, err
	}

	var org flex.OrgID
	if err := readID(&org, r.PostFormValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	err := s.act(r, access.Action{Act: "stop instructions", Org: org}, func() error {
		_, err := s.Control.StopInstructions(r.Context(), org, r.operator.Name)
		return err
	})

	return view{to: instructionsPath + "?org=" + org.String() +
		"&done=stopped"}, err
}
