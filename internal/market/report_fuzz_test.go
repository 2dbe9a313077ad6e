package market

import (
	"io"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// FuzzReadReport: a settled volume is of a half-hour of its day and within the limit, and one of a
// metering point that is not the party's is noted. What is wrong with a report is the file's fault.
func FuzzReadReport(f *testing.F) {
	const header = "mpan,settlement_date,settlement_period,delivered_kwh\n"
	f.Add(header + "1099000010005,2026-03-29,46,1.5\n1099000010005,2026-10-25,50,-1e5\n")
	f.Add(header + "1099000010005,2026-03-29,47,1\n")
	f.Add(header + "1099000010005,2026-03-28,47,NaN\n")
	f.Add("\ufeff" + header + "=1+1,0000-00-00,1e3,NaN\n\"")

	f.Fuzz(func(t *testing.T, text string) {
		r := report{run: 1}
		read := 0

		err := r.read(
			func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
			func(v store.SettledVolume) error {
				read++
				kwh := v.Delivered.KWh()
				if !flex.PeriodAt(v.At).Start().Equal(v.At) || kwh > deliveredMax || kwh < -deliveredMax {
					t.Fatalf("%q: %+v", text, v)
				}
				return nil
			},
		)

		if err != nil && flex.KindOf(err) != flex.Invalid {
			t.Fatalf("%q: %v", text, err)
		}
		if read > 0 && len(r.wrong) == 0 {
			t.Fatalf("%q: no metering point is this party's, and none is refused", text)
		}
	})
}

// FuzzReadPairs: a pair that is read has a time, two metering points at most, and none of them
// is in another pair on the same days.
func FuzzReadPairs(f *testing.F) {
	const header = "import_mpan,export_mpan,bm_unit,gsp_group,supplier_mpid,from_date,to_date,largest_export_kwh\n"
	f.Add(header + "1099000010005,,V__ABCD001,_A,ABCD,2026-01-01,2026-03-29,1.5\n1099000010005,,,,,2026-03-30,,\n")
	f.Add(header + "1099000010005,,,,,2026-01-01,,\n10 9900 0010 005,,,,,2026-02-01,,\n")
	f.Add("\ufeff" + header + "=1+1,,,,,,,NaN\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := ReadPairs(strings.NewReader(text))
		if err != nil {
			if flex.KindOf(err) != flex.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}

		for i, p := range pairs {
			if p.Import == p.Export || !p.To.IsZero() && !p.From.Before(p.To) {
				t.Fatalf("%q: %+v", text, p)
			}

			for _, other := range pairs[:i] {
				apart := !p.To.IsZero() && !other.From.Before(p.To) || !other.To.IsZero() && !p.From.Before(other.To)
				if other.Import == p.Import && !apart {
					t.Fatalf("%q: %+v and %+v", text, p, other)
				}
			}
		}
	})
}
