package wire

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

const oneReading = `{"asset_id":"b2c3d4e5-f6a7-8901-bcde-f23456789012","start_timestamp":"2026-01-15T10:00:00Z","end_timestamp":"2026-01-15T10:30:00Z","value":3.7,"label":"charger_consumption_energy_kwh"}`

// many is a batch of n times the same item, made as it is read.
func many(item string, n int) io.Reader {
	readers := []io.Reader{strings.NewReader(`{"readings":[`)}
	const chunk = 1000
	for ; n > chunk; n -= chunk {
		readers = append(readers, strings.NewReader(strings.Repeat(item+",", chunk)))
	}
	return io.MultiReader(append(readers, strings.NewReader(strings.TrimSuffix(strings.Repeat(item+",", n), ",")+`]}`))...)
}

func TestReadings_OneBadReadingDoesNotEndTheBatch(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(oneReading, old, new, 1) }
	for _, c := range []struct {
		reading    string
		faults     int
		identified bool
	}{
		{oneReading, 0, true},
		{with("3.7", "-3.7e-3"), 0, true},
		{with("3.7", `"3.7"`), 1, false},
		{with("3.7", `null`), 1, false},
		{with("3.7", `1e999`), 1, true},
		{with("3.7", `1e10`), 1, true},
		{with(`"value":3.7,`, ``), 1, false},
		{with(`"value"`, `"Value"`), 1, false},
		{with(`T10:00:00Z`, `T10:00:00`), 1, false},
		{with(`10:30:00Z`, `25:30:00Z`), 1, false},
		{with(`_kwh`, `_kw`), 1, false},
		{with(`b2c3`, `x2c3`), 1, false},
		{`{}`, 5, false},
		{`null`, 1, false},
		{`[]`, 1, false},
	} {
		n := 0

		for item, err := range Readings(strings.NewReader(`{"unknown":[{}],"readings":[`+oneReading+`,`+c.reading+`,`+oneReading+`],"x":1}`), nil) {
			if err != nil {
				t.Fatalf("%s: %v", c.reading, err)
			}
			faults, identified := 0, true
			if n == 1 {
				faults, identified = c.faults, c.identified
			}

			if len(item.Faults) != faults || item.Identified != identified {
				t.Errorf("reading %d of %s: %v, %v", n, c.reading, item.Faults, item.Identified)
			}
			if faults == 0 && item.AssetID.String() != "b2c3d4e5-f6a7-8901-bcde-f23456789012" {
				t.Errorf("reading %d: %+v", n, item)
			}
			n++
		}

		if n != 3 {
			t.Errorf("%d readings of %s", n, c.reading)
		}
	}
}

func TestReadings_Values(t *testing.T) {
	for item, err := range Readings(strings.NewReader(`{"readings":[`+oneReading+`]}`), nil) {
		want := ReadingDataPoint{
			AssetID:        item.AssetID,
			StartTimestamp: At(time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)),
			EndTimestamp:   At(time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC)),
			Label:          flex.ChargerEnergy, Value: 3.7,
		}
		if err != nil || item.ReadingDataPoint != want {
			t.Errorf("got %+v, %v", item, err)
		}
	}
}

func TestReadings_EmptyBatch(t *testing.T) {
	for range Readings(strings.NewReader(`{"readings":[]}`), nil) {
		t.Error("neither a reading nor an error was due")
	}
}

// TestReadings_ErrorAfterReadings ends a batch in its middle, in the ways in which it can.
func TestReadings_ErrorAfterReadings(t *testing.T) {
	large := flex.Fail(flex.TooLarge, "larger than 64 MiB")
	for _, c := range []struct {
		body io.Reader
		kind flex.Kind
	}{
		{strings.NewReader(`{"readings":[` + oneReading), flex.Invalid},
		{strings.NewReader(`{"readings":[` + oneReading + `]} {}`), flex.Invalid},
		{strings.NewReader(`{"readings":[` + oneReading + `],"readings":[]}`), flex.Invalid},
		{strings.NewReader(`{"readings":[` + oneReading + `],"READINGS":[]}`), flex.Invalid},
		{io.MultiReader(strings.NewReader(`{"readings":[`+oneReading+`,`), errReader{large}), flex.TooLarge},
		{io.MultiReader(strings.NewReader(`{"readings":[`+oneReading+`,`), errReader{io.ErrUnexpectedEOF}), flex.Internal},
	} {
		var kinds []flex.Kind

		for _, err := range Readings(c.body, nil) {
			if err != nil {
				kinds = append(kinds, flex.KindOf(err))
			} else {
				kinds = append(kinds, 99)
			}
		}

		if !slices.Equal(kinds, []flex.Kind{99, c.kind}) {
			t.Errorf("got %v, want a reading and %v", kinds, c.kind)
		}
	}
}

func TestReadings_Stop(t *testing.T) {
	for _, err := range Readings(many(oneReading, 10), nil) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
}

func TestReadings_Bound(t *testing.T) {
	if testing.Short() {
		t.Skip("reads three million readings")
	}

	for n, word := range map[int]string{MaxReadings - 1: "", MaxReadings: "", MaxReadings + 1: "value_error.list.max_items"} {
		got, readings := "", 0

		for _, err := range Readings(many("0", n), nil) {
			if e, ok := errors.AsType[*flex.Error](err); ok {
				got = e.Faults[0].Type
			} else {
				readings++
			}
		}
		if got != word || readings != min(n, MaxReadings) {
			t.Errorf("%d readings: %d and %q", n, readings, got)
		}
	}
}

// TestReadings_Memory reads 9 MB of readings and looks at what is held meanwhile.
func TestReadings_Memory(t *testing.T) {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0

	for _, err := range Readings(repeated(50_000), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%10_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			if held := int64(now.HeapAlloc) - int64(before.HeapAlloc); held > 1<<20 {
				t.Errorf("after %d readings %d bytes are held", n, held)
			}
		}
	}

	if n != 50_000 {
		t.Errorf("%d readings", n)
	}
}

// repeated is a batch of n readings that is nowhere held whole.
func repeated(n int) io.Reader {
	r, w := io.Pipe()
	go func() {
		io.WriteString(w, `{"readings":[`+oneReading)
		for range n - 1 {
			io.WriteString(w, ","+oneReading)
		}
		io.WriteString(w, `]}`)
		w.Close()
	}()
	return r
}

func BenchmarkReadings(b *testing.B) {
	body := `{"readings":[` + strings.Repeat(oneReading+",", 999) + oneReading + `]}`
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))

	for b.Loop() {
		n := 0
		for item, err := range Readings(strings.NewReader(body), nil) {
			if err != nil || item.Faults != nil {
				b.Fatal(err, item.Faults)
			}
			n++
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
}

func BenchmarkEncodeVerdicts(b *testing.B) {
	var item ReadingDataPoint
	for i := range Readings(strings.NewReader(`{"readings":[`+oneReading+`]}`), nil) {
		item = i.ReadingDataPoint
	}
	response := ReadingsResponse{}
	for range 1000 {
		response.Responses = append(response.Responses, ReadingResponse{item.AssetID, item.StartTimestamp, item.EndTimestamp, item.Label, true, ""})
	}

	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(response); err != nil {
			b.Fatal(err)
		}
	}
}
