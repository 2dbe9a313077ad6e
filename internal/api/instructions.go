package api

import (
	"bytes"

	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// instruct answers POST /grid/instructions. Who sends one, and why, is kept in the audit log.
func (s *Server) instruct(r *request) (answer, error) {
	in, q := body[wire.InstructionRequest](r), query[wire.InstructionQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	asked := contract.InstructionOf(&in, "credential "+r.who.Username)
	if q.DryRun {
		p, err := s.Control.PreviewInstruction(r.Context(), r.who.Org, asked)
		if err != nil {
			return answer{}, err
		}
		return ok(contract.InstructionPreview(p)), nil
	}

	answered := answersWith(r, instructed)
	var p *control.Preview
	err := s.Access.Act(
		r.Context(),
		r.auditEntry("send instruction", "", in.Reason),
		func() error {
			var err error
			p, err = s.Control.SendInstruction(r.Context(), r.who.Org, asked)
			return err
		},
	)
	if err != nil {
		return answer{}, err
	}

	return answered(p), nil
}

// instructed is the answer to an instruction that was sent.
func instructed(p *control.Preview) answer {
	return ok(contract.InstructionPreview(p))
}

// auditEntry is what the caller does, as the audit log keeps it.
func (r *request) auditEntry(act, subject, detail string) flex.AuditEntry {
	return flex.AuditEntry{
		Who:     "credential " + r.who.Username,
		Source:  r.from,
		Act:     act,
		Org:     r.who.Org,
		Subject: subject,
		Detail:  detail,
	}
}

// instructions answers GET /grid/instructions.
func (s *Server) instructions(r *request) (answer, error) {
	q := query[wire.InstructionListQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	p, err := s.Control.Instructions(r.Context(), r.who.Org, q.Before, q.Limit)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.InstructionPage(&p)), nil
}

// instruction answers GET /grid/instructions/{id}.
func (s *Server) instruction(r *request) (answer, error) {
	p, q := path[wire.InstructionPath](r), query[wire.InstructionReportQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	read := s.Control.ReportInstruction
	if q.Minutes {
		read = s.Control.ReportInstructionMinutes
	}

	report, err := read(r.Context(), r.who.Org, p.ID)
	if err != nil {
		return answer{}, err
	}
	if q.Format != "csv" {
		return ok(contract.InstructionReport(report, q.Assets)), nil
	}

	var b bytes.Buffer
	if err := report.WriteCSV(&b); err != nil {
		return answer{}, err
	}

	a := ok(text(b.Bytes()))
	a.set("Content-Type", "text/csv; charset=utf-8")
	a.set("Content-Disposition", `attachment; filename="instruction.csv"`)

	return a, nil
}

// stopInstruction answers POST /grid/instructions/{id}/stop.
func (s *Server) stopInstruction(r *request) (answer, error) {
	p := path[wire.InstructionPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	act := r.auditEntry("stop instruction", p.ID.String(), "")
	var in flex.Instruction
	err := s.Access.Act(r.Context(), act, func() error {
		var err error
		in, err = s.Control.StopInstruction(
			r.Context(),
			r.who.Org,
			p.ID,
			act.Who,
		)

		return err
	})
	if err != nil {
		return answer{}, err
	}

	return ok(contract.Instruction(&in, in.To)), nil
}

// stopInstructions answers POST /grid/instructions/stop.
func (s *Server) stopInstructions(r *request) (answer, error) {
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	act := r.auditEntry("stop instructions", "", "")
	answered := answersWith(r, func(stopped int) answer {
		return ok(wire.InstructionsStopped{NumStopped: stopped})
	})

	var stopped int
	err := s.Access.Act(r.Context(), act, func() error {
		var err error
		stopped, err = s.Control.StopInstructions(
			r.Context(),
			r.who.Org,
			act.Who,
		)

		return err
	})

	return answered(stopped), err
}
