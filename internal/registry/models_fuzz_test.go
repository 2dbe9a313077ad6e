package registry

import (
	"slices"
	"strings"
	"testing"

	"flexd/internal/flex"
)

// FuzzReadModels: every model that is read has a name, a type and no negative power, and what is
// wrong with a file is its fault.
func FuzzReadModels(f *testing.F) {
	f.Add("name,type,cop11_qualified,power_kw,capacity_kwh,enrol\nAcme 7,charger,true,7.4,,allow\n")
	f.Add("type,name,cop11_qualified,power_kw\nbattery,B,false,-1\nbattery,B,false,1e309\nbattery,B,false,NaN\n")
	f.Fuzz(func(t *testing.T, text string) {
		models, err := ReadModels(strings.NewReader(text))
		if err != nil {
			if flex.KindOf(err) != flex.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}

		for _, m := range models {
			negative := m.Power != nil && *m.Power < 0 || m.Capacity != nil && *m.Capacity < 0
			if m.Name == "" || !slices.Contains(creatable, m.Type) || negative {
				t.Fatalf("%q: %+v", text, m)
			}
		}
	})
}
