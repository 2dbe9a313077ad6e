package contract

import (
	"cmp"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// BindingOf reads how a program is to be bound.
func BindingOf(
	program flex.ADRObjectID,
	in *wire.ProgramBindingRequest,
	who string,
) flex.ADRBinding {
	b := flex.ADRBinding{
		Program: program,
		Scope:   flex.Scope{Group: in.Group, GSPGroup: in.GSPGroup},
		Service: cmp.Or(in.Service, "other"),
		Price:   flex.FromGBPPerMWh(in.PriceGBPPerMWh),
		Kind:    flex.ADRBindingKind(in.Kind),
		Who:     who,
	}

	for _, kw := range in.SimpleKW {
		b.Simple = append(b.Simple, flex.FromKW(kw))
	}

	return b
}

// Programs are OpenADR programs, and how each is bound.
func Programs(found []adr.BoundProgram) wire.Programs {
	d := wire.Programs{Programs: []wire.Program{}}
	for i := range found {
		d.Programs = append(d.Programs, program(&found[i]))
	}

	return d
}

func program(p *adr.BoundProgram) wire.Program {
	d := wire.Program{ID: p.ID, Name: p.Name}
	b := p.Binding
	if b == nil {
		return d
	}

	d.Binding = &wire.ProgramBinding{
		Kind:           string(b.Kind),
		Service:        b.Service,
		PriceGBPPerMWh: b.Price.GBPPerMWh(),
		SimpleKW:       []float64{},
		Group:          b.Scope.Group,
		GSPGroup:       b.Scope.GSPGroup,
		Who:            b.Who,
		MadeAt:         wire.At(b.MadeAt),
	}

	for _, w := range b.Simple {
		d.Binding.SimpleKW = append(d.Binding.SimpleKW, w.KW())
	}

	return d
}

// ProgramBound is what a change of a binding did, or would do.
func ProgramBound(b *adr.Bound) wire.ProgramBound {
	return wire.ProgramBound{
		Program:   program(&b.BoundProgram),
		Asked:     programOrders(b.New),
		Withdrawn: programOrders(b.Withdrawn),
		NumStays:  b.NumStays,
	}
}

func programOrders(orders []adr.StoredOrder) []wire.ProgramOrder {
	list := []wire.ProgramOrder{}
	for _, o := range orders {
		d := wire.ProgramOrder{
			EventID:        o.Event,
			Interval:       o.Interval,
			StartTimestamp: wire.At(o.From),
			EndTimestamp:   wire.At(o.To),
			ChangeKW:       o.Change.KW(),
			State:          string(o.State),
			Problem:        o.Problem,
		}

		if o.Limit != nil {
			kw := o.Limit.KW()
			d.LimitKW = &kw
			d.Direction = string(cmp.Or(o.Direction, flex.Import))
		}

		list = append(list, d)
	}

	return list
}
