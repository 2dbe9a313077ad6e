package registry_test

import (
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/registry"
)

func TestReadModels(t *testing.T) {
	const head = "type,name,cop11_qualified,power_kw,capacity_kwh,colour\n"
	got, err := registry.ReadModels(strings.NewReader(head + "charger,Wallbox 7,true,7.4,,red\nbattery,Cell,false,5,10.5,\n"))
	if err != nil || len(got) != 2 || !got[0].CoP11 || *got[0].Power != 7400 || got[0].Capacity != nil || *got[1].Capacity != 10500 {
		t.Errorf("read %+v, %v", got, err)
	}
	for row, want := range map[string]string{
		"charger,,true,,,":         "line 2: name",
		"toaster,Wallbox,true,,,":  "line 2: type",
		"charger,Wallbox,yes,,,":   "line 2: cop11_qualified",
		"charger,Wallbox,true,x,,": "line 2: power_kw",
		"battery,Cell,true,,-1,":   "line 2: capacity_kwh",
	} {
		_, err := registry.ReadModels(strings.NewReader(head + row + "\n"))
		if flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", row, err, want)
		}
	}
}
