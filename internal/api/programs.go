package api

import (
	"flexd/internal/adr"
	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// programs answers GET /grid/programs.
func (s *Server) programs(r *request) (answer, error) {
	found, err := s.ADR.Programs(r.Context(), r.who.Org)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.Programs(found)), nil
}

// bindProgram answers PUT /grid/programs/{id}/binding. Who binds programs is kept in the audit log.
func (s *Server) bindProgram(r *request) (answer, error) {
	p, in := path[wire.ProgramPath](r), body[wire.ProgramBindingRequest](r)
	q := query[wire.ProgramBindingQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	b := contract.BindingOf(p.ID, &in, "credential "+r.who.Username)

	act := r.auditEntry("bind openadr program", p.ID.String(), adr.Detail(&b))

	return s.changeBinding(
		r,
		act,
		q.DryRun,
		func() (adr.Bound, error) {
			return s.ADR.Bind(r.Context(), r.who.Org, &b, !q.DryRun)
		},
	)
}

// unbindProgram answers DELETE /grid/programs/{id}/binding.
func (s *Server) unbindProgram(r *request) (answer, error) {
	p, q := path[wire.ProgramPath](r), query[wire.ProgramBindingQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	act := r.auditEntry("unbind openadr program", p.ID.String(), "")

	return s.changeBinding(
		r,
		act,
		q.DryRun,
		func() (adr.Bound, error) {
			return s.ADR.Unbind(r.Context(), r.who.Org, p.ID, !q.DryRun)
		},
	)
}

// changeBinding changes a binding and writes that in the audit log, or previews the change.
func (s *Server) changeBinding(
	r *request,
	act flex.AuditEntry,
	dryRun bool,
	change func() (adr.Bound, error),
) (answer, error) {
	answered := answersWith(r, func(done adr.Bound) answer {
		return ok(contract.ProgramBound(&done))
	})

	var done adr.Bound
	var err error
	if dryRun {
		done, err = change()
	} else {
		err = s.Access.Act(
			r.Context(),
			act,
			func() error {
				var err error
				done, err = change()
				return err
			},
		)
	}

	if err != nil {
		return answer{}, err
	}

	return answered(done), nil
}
