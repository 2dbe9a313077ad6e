package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"flexd/internal/flex"
	"flexd/internal/lab/problem"
)

// verifyFile checks the answers in a file against the problems of the input. Both have one
// line each, in the same order.
func verifyFile(ctx context.Context, in io.Reader, out io.Writer, file string) error {
	answers, err := os.Open(file)
	if err != nil {
		return err
	}
	defer answers.Close()

	return verifyLines(ctx, in, answers, out)
}

// verifyLines writes one line with the result for each problem. It fails if an answer is wrong
// or missing, or if there are more answers than problems.
func verifyLines(ctx context.Context, in, answers io.Reader, out io.Writer) error {
	problems, given := bufio.NewReaderSize(in, 1<<16), bufio.NewReaderSize(answers, 1<<16)
	w := bufio.NewWriter(out)
	invalid, all := 0, 0

	for ctx.Err() == nil {
		line, long, err := readLine(problems, nil)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("read problems: %w", err)
		}

		if last && len(line) == 0 && !long {
			break
		}

		answer, _, err := readLine(given, nil)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read answers: %w", err)
		}

		all++
		found, isValid := verifyLine(line, answer)
		if !isValid {
			invalid++
		}

		text, err := problem.Append(nil, found)
		if err != nil {
			return err
		}

		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("write what was found: %w", err)
		}

		if last {
			break
		}
	}

	if err := w.Flush(); err != nil {
		return fmt.Errorf("write what was found: %w", err)
	}

	if invalid > 0 {
		return fmt.Errorf("%d of %d answers do not hold", invalid, all)
	}

	return cmp.Or(ctx.Err(), checkNoAnswersLeft(given, all))
}

// checkNoAnswersLeft fails if there are more answers than problems.
func checkNoAnswersLeft(answers *bufio.Reader, problems int) error {
	line, long, err := readLine(answers, nil)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read answers: %w", err)
	}

	if long || len(line) > 0 {
		return flex.Fail(
			flex.Invalid,
			"there are more answers than the %d problems of the input: the others were not checked",
			problems,
		)
	}

	return nil
}

// verifyLine checks one answer. It returns the finding, and whether the answer is valid.
func verifyLine(line, answer []byte) (any, bool) {
	p, err := problem.Decode(line)
	if err != nil {
		return problem.Refusal{ID: problem.IDOf(line), Error: err.Error()}, false
	}

	found, err := p.Verify(answer)
	if err != nil {
		return problem.Refusal{ID: p.ID, Error: err.Error()}, false
	}

	return found, true
}
