package api

import (
	"bytes"

	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/wire"
)

// offer answers POST /grid/offers. Who makes one is kept in the audit log.
func (s *Server) offer(r *request) (answer, error) {
	in, q := body[wire.OfferRequest](r), query[wire.OfferQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	asked := contract.OfferOf(&in, "credential "+r.who.Username)
	if q.DryRun {
		k, err := s.Grid.Stack(r.Context(), r.who.Org, asked)
		if err != nil {
			return answer{}, err
		}
		return ok(contract.OfferStack(k)), nil
	}

	answered := answersWith(r, func(k *grid.Stack) answer { return ok(contract.OfferStack(k)) })
	var k *grid.Stack
	err := s.Access.Act(
		r.Context(),
		r.auditEntry("make offer", "", asked.Service),
		func() error {
			var err error
			k, err = s.Grid.MakeOffer(r.Context(), r.who.Org, asked)
			return err
		},
	)
	if err != nil {
		return answer{}, err
	}

	return answered(k), nil
}

// offers answers GET /grid/offers.
func (s *Server) offers(r *request) (answer, error) {
	q := query[wire.OfferListQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	p, err := s.Grid.Offers(r.Context(), r.who.Org, q.Before, q.Limit)
	if err != nil {
		return answer{}, err
	}
	if q.Format != "csv" {
		return ok(contract.OfferPage(p)), nil
	}

	var b bytes.Buffer
	if err := p.WriteCSV(&b); err != nil {
		return answer{}, err
	}

	return csvNamed("offers.csv", b.Bytes()), nil
}

// acceptOffer answers POST /grid/offers/{id}/accept: the offer becomes an instruction.
func (s *Server) acceptOffer(r *request) (answer, error) {
	at := path[wire.OfferPath](r)
	in, q := body[wire.OfferAcceptRequest](r), query[wire.OfferQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	o, err := s.Grid.Offer(r.Context(), r.who.Org, at.ID)
	if err != nil {
		return answer{}, err
	}

	asked, err := grid.Accepted(
		&o,
		flex.FromKW(in.PowerKW),
		in.Reason,
		"credential "+r.who.Username,
	)

	if err != nil {
		return answer{}, err
	}

	answered := answersWith(r, instructed)
	var p *control.Preview
	if q.DryRun {
		p, err = s.Control.PreviewInstruction(r.Context(), r.who.Org, asked)
	} else {
		err = s.Access.Act(
			r.Context(),
			r.auditEntry("accept offer", at.ID.String(), in.Reason),
			func() error {
				var err error
				p, err = s.Control.SendInstruction(
					r.Context(),
					r.who.Org,
					asked,
				)

				return err
			},
		)
	}

	if err != nil {
		return answer{}, err
	}

	return answered(p), nil
}
