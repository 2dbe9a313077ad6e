package wire

import (
	"errors"
	"io"
	"iter"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/flex"
)

// ReadingItem is one reading of a batch as it came in.
type ReadingItem struct {
	ReadingDataPoint
	// what is wrong with it; nil for a well-formed reading
	Faults []flex.Fault
	// it has the published form, so that a verdict can be given on it by itself
	Identified bool
}

// Readings reads the body of POST /data/readings one reading at a time, in memory that does
// not grow with the batch. A malformed reading comes with its faults and does not end the
// batch. An error ends it: the body is not JSON, has no readings or more than MaxReadings
// of them, or r failed, whose flex.Error is passed on.
//
// The error may come after readings. Whoever must know beforehand that none will come, and
// that all are identified, runs through the sequence twice. Unknown names are noted in
// ignored when the sequence ends, unless it is nil.
func Readings(r io.Reader, ignored *Ignored) iter.Seq2[ReadingItem, error] {
	return func(yield func(ReadingItem, error) bool) {
		d := &decoder{json: jsontext.NewDecoder(r), where: "body"}
		d.each = func(item reflect.Value) error {
			frame := 0 // faults of the frame, not of a reading in it
			for frame < len(d.faults) && len(d.faults[frame].Loc) < 3 {
				frame++
			}

			var faults []flex.Fault
			if frame < len(d.faults) {
				faults, d.faults = d.faults[frame:], d.faults[:frame:frame]
			}

			reading := *item.Addr().Interface().(*ReadingDataPoint)
			if !yield(ReadingItem{reading, faults, identified(faults)}, nil) {
				return errEnough
			}

			return nil
		}

		defer func() { ignored.join(d.ignored) }()

		var frame ReadingsDataPoints
		err := d.document(
			shapeOf(reflect.TypeFor[ReadingsDataPoints]()),
			reflect.ValueOf(&frame).Elem(),
		)
		if err != nil && !errors.Is(err, errEnough) {
			yield(ReadingItem{}, err)
		}
	}
}

var errEnough = errors.New("enough")

// identified reports whether nothing is at fault but the size of a reading's value. A value that is missing, or no
// number, departs from the published form, as a missing time does. A fault's place is body, readings, the position and
// then the field.
func identified(faults []flex.Fault) bool {
	for _, f := range faults {
		if len(f.Loc) < 4 || f.Loc[3] != "value" {
			return false
		}

		if f.Type == faultMissing.word || strings.HasPrefix(f.Type, "type_error.") {
			return false
		}
	}

	return true
}
