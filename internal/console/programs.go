package console

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/wire"
)

const programsPath = "/console/programs"

// programsPage lists an organisation's OpenADR programs, with a form to bind one.
type programsPage struct {
	Orgs     []flex.Org
	Org      flex.OrgID
	Programs []adr.BoundProgram
	adr.Traffic
	Services []string
	Export   Export
}

func (s *Server) programs(r *request) (view, error) {
	if err := r.onlyFilters("org"); err != nil {
		return view{}, err
	}

	p := &programsPage{Services: control.InstructionServices, Export: r.exports()}
	var chosen flex.OrgID
	err := readFilter(&chosen, r.URL.Query().Get("org"), "organisation")
	if err != nil {
		return view{}, err
	}

	p.Orgs, p.Org, p.Programs, err = s.ADR.ProgramsOf(r.Context(), chosen)
	if err == nil && !p.Org.IsZero() {
		p.Traffic, err = s.ADR.TrafficOf(r.Context(), p.Org, pageMax)
	}

	return view{
		page:   "programs",
		title:  "OpenADR programs",
		crumbs: []crumb{{"Instructions", instructionsPath}},
		data:   p,
		table:  p.table(),
		record: contract.Programs(p.Programs),
	}, err
}

func (p *programsPage) table() *table {
	t := &table{
		Name: "programs",
		Columns: []string{
			"id",
			"name",
			"bound_as",
			"group",
			"gsp_group",
			"service",
			"price_gbp_per_mwh",
			"simple_kw",
			"bound_by",
			"bound_at",
		},
	}

	for i := range p.Programs {
		one := &p.Programs[i]
		b := one.Binding
		if b == nil {
			b = &flex.ADRBinding{}
		}

		t.add(
			one.ID.String(),
			one.Name,
			string(b.Kind),
			b.Scope.Group,
			b.Scope.GSPGroup,
			b.Service,
			b.Price.GBPPerMWh(),
			adr.SimpleText(b.Simple),
			b.Who,
			b.MadeAt,
		)
	}

	return t
}

// bindingForm has the binding of a program as it was typed.
type bindingForm struct {
	Org     flex.OrgID
	Program flex.ADRObjectID
	Kind    string // empty to end the binding
	Service string
	Group   string
	GSP     string
	Price   string
	Simple  string
	adr.Bound
}

// Ends reports whether a binding is to end.
func (f *bindingForm) Ends() bool { return f.Kind == "" }

// Word is the confirmation that is typed to make the change.
func (f *bindingForm) Word() string {
	if f.Ends() {
		return "unbind"
	}

	return "bind"
}

// Becomes says how events are carried out.
func (f *bindingForm) Becomes() string {
	switch flex.ADRBindingKind(f.Kind) {
	case flex.ADRLimit:
		return "limits of a group"
	case flex.ADRImportLimit:
		return "limits of what a group draws"
	}

	return "instructions"
}

// Where names the part of the fleet to which the events apply.
func (f *bindingForm) Where() string {
	return adr.Where(flex.Scope{Group: f.Group, GSPGroup: f.GSP})
}

func readBinding(r *request) (bindingForm, flex.ADRBinding, error) {
	f := bindingForm{
		Kind:    r.PostFormValue("kind"),
		Service: r.PostFormValue("service"),
		Group:   r.PostFormValue("group"),
		GSP:     r.PostFormValue("gsp_group"),
		Price:   r.PostFormValue("price"),
		Simple:  r.PostFormValue("simple"),
	}

	err := readID(&f.Org, r.PostFormValue("org"), "organisation")
	if err == nil {
		err = readID(&f.Program, r.PostFormValue("program"), "program")
	}
	var b flex.ADRBinding
	if err != nil {
		return f, b, err
	}

	known := control.InstructionServices
	if f.Service != "" && !slices.Contains(known, f.Service) {
		return f, b, flex.Fail(flex.Malformed, "service is one of %v", known)
	}

	in := wire.ProgramBindingRequest{
		Kind:     f.Kind,
		Service:  f.Service,
		Group:    f.Group,
		GSPGroup: f.GSP,
	}

	in.PriceGBPPerMWh, err = number(
		f.Price,
		"the price",
		settle.MaxPrice.GBPPerMWh(),
	)

	if err == nil {
		in.SimpleKW, err = simpleKW(f.Simple)
	}

	return f, contract.BindingOf(f.Program, &in, r.operator.Name), err
}

// simpleKW reads the changes of power at the levels of SIMPLE, separated by commas. A minus
// sign may be the typographic one that the console prints.
func simpleKW(text string) ([]float64, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}

	var levels []float64
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		kw, err := strconv.ParseFloat(strings.Replace(part, "−", "-", 1), 64)
		within := math.Abs(kw) <= flex.CapMax.KW() // NaN is not
		if err != nil || !within {
			return nil, flex.Fail(
				flex.Malformed,
				"a change at a level is %q: give kW such as -100, negative to draw less, with commas between",
				part,
			)
		}

		levels = append(levels, kw)
	}

	return levels, nil
}

// changeBinding makes the change of a form, or previews it.
func (s *Server) changeBinding(
	r *request,
	f *bindingForm,
	b *flex.ADRBinding,
	keepOrders bool,
) error {
	var err error
	if f.Ends() {
		f.Bound, err = s.ADR.Unbind(r.Context(), f.Org, f.Program, keepOrders)
	} else {
		f.Bound, err = s.ADR.Bind(r.Context(), f.Org, b, keepOrders)
	}

	return err
}

// previewBinding shows the effect of a change of a program's binding and changes nothing.
func (s *Server) previewBinding(r *request) (view, error) {
	f, b, err := readBinding(r)
	if err != nil {
		return view{}, err
	}

	err = s.changeBinding(r, &f, &b, false)

	return view{
		page:   "programpreview",
		title:  "Preview",
		crumbs: []crumb{{"OpenADR programs", programsPath}},
		data:   &f,
	}, err
}

// bindProgram changes a program's binding, if that was typed.
func (s *Server) bindProgram(r *request) (view, error) {
	f, b, err := readBinding(r)
	if err == nil {
		err = checkConfirmation(r, f.Word())
	}
	if err != nil {
		return view{}, err
	}

	act := access.Action{
		Act:     "bind openadr program",
		Org:     f.Org,
		Subject: f.Program.String(),
		Detail:  adr.Detail(&b),
	}
	if f.Ends() {
		act.Act, act.Detail = "unbind openadr program", ""
	}

	err = s.act(r, act, func() error {
		return s.changeBinding(r, &f, &b, true)
	})

	return view{to: programsPath + "?org=" + f.Org.String() + "&done=bound"}, err
}
