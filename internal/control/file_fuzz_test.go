package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// FuzzReadLimits: a limit that is read is within what can be, and what is wrong with a file of limits
// is the file's fault.
func FuzzReadLimits(f *testing.F) {
	const header = "group,start_timestamp,end_timestamp,limit_kw,direction\n"
	f.Add(header + "a,2026-01-15T18:00:00Z,2026-01-15T19:00:00+01:00,12.5,import\n")
	f.Add(header + "\"a\n\",2026-01-15T18:00:00Z,0000-01-01T00:00:00Z,NaN,\n")
	f.Add(header + "a,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,1,\n\"")
	f.Add("\ufefflimit_kw,group,start_timestamp,end_timestamp\n-1e6,=1+1,9999-12-31T23:59:60Z,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		limits, err := control.ReadLimits(strings.NewReader(text))
		if err != nil {
			if flex.KindOf(err) != flex.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}

		for _, l := range limits {
			if l.Power > flex.CapMax || l.Power < -flex.CapMax {
				t.Fatalf("%q: %v", text, l)
			}
		}
	})
}

// FuzzReadProducts: a product that is read asks for something, at a price, in whole minutes.
func FuzzReadProducts(f *testing.F) {
	header := strings.Join(control.ProductColumns, ",")
	f.Add(header + "\nA1,dno,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,100,250\n")
	f.Add(header + ",direction,answer_by\nA1,cm,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,1e-9,1e-9,up,2026-01-15T17:00:00Z\n")
	f.Add(header + ",group,\nA1,dfs,2026-01-15T18:00:01Z,2026-01-15T19:00:00Z,1,1,g,\n")
	f.Add(header + "\nA1,dfs,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,NaN,-0\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		products, err := control.ReadProducts(strings.NewReader(text), "somebody")
		if err != nil {
			if flex.KindOf(err) != flex.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}

		for _, p := range products {
			asks := p.Change != 0 && p.Price > 0 && p.Who == "somebody"
			whole := p.From.Truncate(time.Minute).Equal(p.From) && p.From.Before(p.To)
			if !asks || !whole {
				t.Fatalf("%q: %+v", text, p)
			}
		}
	})
}
