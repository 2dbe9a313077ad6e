package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/lab/problem"
)

// planCommand is the engine alone.
type planCommand struct {
	always
	Certificate bool `help:"Add to each answer what proves its lower bound, as docs/engine.md says." env:"FLEXD_CERTIFICATE"`

	Check string `help:"Plan nothing: check the answers in this file, made with --certificate, against the problems of the input, which are homes." env:"FLEXD_CHECK" placeholder:"FILE"`

	Repeat int `help:"Plan each problem this many times, and report the mean time of one." default:"1" env:"FLEXD_REPEAT" placeholder:"N"`
}

// Help is what "flexd plan --help" says more.
func (*planCommand) Help() string {
	return "Each line of input gives one line of output, in the same order: the plan, its cost, a lower bound on the cost of any plan, and the time that planning took; or an error, and then the next line is planned. Families: " +
		strings.Join(problem.Families(), ", ") + `.

An example:

  echo '{"id":"a","family":"ev-plain","price_p_per_kwh":[9,5,7],"avail_hours":[0.5,0.5,0.5],"max_kw":7,"energy_kwh":5}' | flexd plan

answers

  {"id":"a","answer":{"kwh":[0,3.5,1.5]},"cost_p":28,"lower_bound_p":28,"feasible":true,"micros":0.4}

docs/engine.md describes the fields of every family, and how to read a certificate. The certificates of homes can be checked separately:

  flexd plan --certificate < homes.ndjson > plans.ndjson
  flexd plan --check plans.ndjson < homes.ndjson`
}

// maxRepeat bounds --repeat.
const maxRepeat = 10_000_000

// Run plans the problems of the input, a line each.
func (p *planCommand) Run(ctx context.Context, c console) error {
	if p.Repeat < 1 || p.Repeat > maxRepeat {
		return flex.Fail(
			flex.Invalid,
			"--repeat is %d, which is not from 1 to %d",
			p.Repeat,
			maxRepeat,
		)
	}

	if p.Check != "" {
		return verifyFile(ctx, c.in, c.out, p.Check)
	}

	return planLines(ctx, c.in, c.out, p.Repeat, p.Certificate)
}

// planLines answers every line with a line. If a line cannot be planned, the answer says what
// is wrong with it, and the rest continues.
func planLines(
	ctx context.Context,
	in io.Reader,
	out io.Writer,
	repeat int,
	certify bool,
) error {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)
	var scratch problem.Scratch
	var line, answer []byte

	for ctx.Err() == nil {
		var tooLong bool
		var err error
		line, tooLong, err = readLine(r, line[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read problems: %w", err)
		}

		last := err != nil
		switch {
		case tooLong:
			answer, err = problem.Append(
				answer[:0],
				problem.Refusal{Error: fmt.Sprintf(
					"the line is longer than %d bytes",
					problem.MaxLine,
				)},
			)

		case last && len(line) == 0: // what the newline before it ended
			answer, err = answer[:0], nil

		default:
			answer, err = planLine(line, &scratch, repeat, certify, answer[:0])
		}

		if err != nil {
			return err
		}

		if _, err := w.Write(answer); err != nil {
			return fmt.Errorf("write plans: %w", err)
		}

		if last || r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return fmt.Errorf("write plans: %w", err)
			}
		}

		if last {
			return nil
		}
	}

	return ctx.Err()
}

// faultOf returns why a plan is not written: there is none, or it breaks a rule.
func faultOf(err error) string {
	if errors.Is(err, problem.ErrNoPlan) {
		return err.Error()
	}

	return fmt.Sprintf("the plan made is not right, and is kept back: %v", err)
}

// planLine answers one line. No plan leaves unchecked.
func planLine(
	line []byte,
	scratch *problem.Scratch,
	repeat int,
	certify bool,
	to []byte,
) ([]byte, error) {
	p, err := problem.Decode(line)
	if err != nil {
		return problem.Append(to, problem.Refusal{
			ID:    problem.IDOf(line),
			Error: err.Error(),
		})
	}

	start := time.Now()

	for range repeat {
		p.Plan(scratch)
	}

	took := time.Since(start)

	if err := p.Check(scratch); err != nil {
		return problem.Append(to, problem.Refusal{
			ID:    p.ID,
			Error: faultOf(err),
		})
	}

	var certificate problem.Certificate
	if certify {
		certificate, err = p.Prove(scratch)
	}

	a := p.Answer()
	a.Micros = float64(took.Nanoseconds()) / 1000 / float64(repeat)
	a.Certificate = certificate

	if err != nil {
		a.Unproven = err.Error()
	}

	return problem.Append(to, a)
}

// readLine appends the next line, without its end and without the byte order mark with which
// some editors begin a file. It stores nothing of a line that is too long.
func readLine(
	r *bufio.Reader,
	to []byte,
) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(to)+len(part) > problem.MaxLine+1 {
			to, tooLong = to[:0], true
		} else if !tooLong {
			to = append(to, part...)
		}

		if !errors.Is(err, bufio.ErrBufferFull) {
			to = bytes.TrimPrefix(to, []byte(byteOrderMark))
			return bytes.TrimSuffix(to, []byte("\n")), tooLong, err
		}
	}
}
