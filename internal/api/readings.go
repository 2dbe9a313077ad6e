package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/wire"
)

// batchReadings is the number of readings that are stored in one transaction. A smaller number
// needs more syncs, a larger one makes other writers wait.
const batchReadings = 5000

// readings answers POST /data/readings. The request is read to its end before anything is
// stored: of a body that is not a list of readings nothing is.
func (s *Server) readings(r *request) (answer, error) {
	in, err := r.stream()
	if err != nil {
		return answer{}, err
	}

	var head bytes.Buffer
	if _, err := io.CopyN(&head, in, spoolMax); errors.Is(err, io.EOF) {
		return s.fewReadings(r, head.Bytes())
	} else if err != nil {
		return answer{}, err
	}

	return s.manyReadings(r, io.MultiReader(&head, in))
}

// fewReadings stores the readings of a body that is in memory.
func (s *Server) fewReadings(r *request, body []byte) (answer, error) {
	var items []wire.ReadingItem
	faults, err := eachReading(bytes.NewReader(body), &r.ignored, func(item wire.ReadingItem) error {
		items = append(items, item)
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	if len(faults) > 0 {
		return answer{}, &flex.Error{Kind: flex.Invalid, Faults: faults}
	}

	out := wire.ReadingsResponse{Responses: make(
		[]wire.ReadingResponse,
		0,
		len(items),
	)}

	for len(items) > 0 {
		n := min(batchReadings, len(items))
		out.Responses, err = s.takeReadings(r, items[:n], out.Responses)
		if err != nil {
			return answer{}, err
		}

		items = items[n:]
	}

	return ok(out), nil
}

// manyReadings stores the readings of a long body in bounded memory: the body is written to a
// file, checked there, and answered while its batches are stored.
func (s *Server) manyReadings(r *request, in io.Reader) (answer, error) {
	file, drop, err := s.spools.spool(r.who.Org, in)
	if err != nil {
		return answer{}, err
	}

	faults, err := eachReading(
		io.NewSectionReader(file, 0, wire.MaxReadingsBody),
		&r.ignored,
		func(wire.ReadingItem) error {
			return nil
		},
	)
	if err == nil && len(faults) > 0 {
		err = &flex.Error{Kind: flex.Invalid, Faults: faults}
	}

	if err != nil {
		drop()
		return answer{}, err
	}

	return answer{stream: func(w io.Writer) error {
		defer drop()
		return s.answerReadings(r, file, w)
	}}, nil
}

// answerReadings stores the readings of the file, and writes the verdicts of each batch after it.
func (s *Server) answerReadings(r *request, file *os.File, w io.Writer) error {
	items := make([]wire.ReadingItem, 0, batchReadings)
	sep := `{"responses":[`
	flush := func() error {
		verdicts, err := s.takeReadings(r, items, nil)
		if err != nil {
			return err
		}

		items = items[:0]

		for _, v := range verdicts {
			b, err := wire.Encode(v)
			if err != nil {
				return err
			}

			if _, err := fmt.Fprintf(w, "%s%s", sep, b); err != nil {
				return err
			}

			sep = ","
		}

		return nil
	}

	_, err := eachReading(
		io.NewSectionReader(file, 0, wire.MaxReadingsBody),
		nil, // they were recorded when the file was checked
		func(item wire.ReadingItem) error {
			items = append(items, item)
			if len(items) == batchReadings {
				return flush()
			}

			return nil
		},
	)

	if err == nil {
		err = flush()
	}

	if err == nil && sep != "," { // there was none
		_, err = io.WriteString(w, sep)
	}

	if err == nil {
		_, err = io.WriteString(w, "]}")
	}

	return err
}

// eachReading calls fn for every reading that can be named in a verdict and returns the
// faults of those that cannot.
func eachReading(
	in io.Reader,
	ignored *wire.Ignored,
	fn func(wire.ReadingItem) error,
) ([]flex.Fault, error) {
	var faults []flex.Fault
	for item, err := range wire.Readings(in, ignored) {
		if err != nil {
			return nil, err
		}

		if !item.Identified {
			faults = append(faults, item.Faults...)
			if len(faults) >= wire.MaxFaults {
				return faults, nil
			}
			continue
		}

		if err := fn(item); err != nil {
			return nil, err
		}
	}

	return faults, nil
}

// takeReadings stores one batch in one transaction and appends its verdicts.
func (s *Server) takeReadings(
	r *request,
	items []wire.ReadingItem,
	to []wire.ReadingResponse,
) ([]wire.ReadingResponse, error) {
	batch := make([]reading.Input, len(items))
	for i, item := range items {
		batch[i] = reading.Input{
			AssetID: item.AssetID,
			Span: flex.Span{
				From: item.StartTimestamp.Time,
				To:   item.EndTimestamp.Time,
			},
			Label: item.Label,
			Value: item.Value,
		}

		// A value beyond all bounds is refused there too, and counted for the operator.
		if len(item.Faults) > 0 {
			batch[i].Value = math.Inf(1)
		}
	}

	verdicts, err := s.Reading.Store(r.Context(), r.who.Org, batch)
	if err != nil {
		return to, err
	}

	for i, item := range items {
		v := wire.ReadingResponse{
			AssetID:        item.AssetID,
			StartTimestamp: item.StartTimestamp,
			EndTimestamp:   item.EndTimestamp,
			Label:          item.Label,
		}

		if len(item.Faults) > 0 {
			v.Error = "value: " + item.Faults[0].Msg
		} else {
			v.Accepted, v.Error = verdicts[i].Accepted(), string(verdicts[i])
		}

		to = append(to, v)
	}

	return to, nil
}
