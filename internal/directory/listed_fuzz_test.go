package directory

import (
	"strings"
	"testing"

	"flexd/internal/flex"
)

// FuzzReadMeters: what is read of a file of metering points is in its normal form, and what is
// wrong with it is the file's fault.
func FuzzReadMeters(f *testing.F) {
	const header = "mpan,direction,address,postcode,energised,half_hourly_settled,domestic\n"
	f.Add(header + "1099000010005,import,1 High Street,SW1A 1AA,true,true,true\n")
	f.Add(header + "10 9900 0010 005,export,\"1, High Street\",sw1a1aa,false,true,false\n1,2,3")
	f.Add("\ufeff" + header + "=1+1,import,,,,,")

	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		err := ReadMeters(strings.NewReader(text), func(m flex.Meter) error {
			core, err := ParseMPAN(m.MPAN)
			if err != nil || core.Core() != m.MPAN || seen[m.MPAN] {
				t.Fatalf("%q: MPAN %q, %v", text, m.MPAN, err)
			}
			seen[m.MPAN] = true
			return nil
		})
		if err != nil && flex.KindOf(err) != flex.Invalid {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
