package settle_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// readings reads "label from to value" lines of one day, values in the label's unit.
func readings(t testing.TB, lines ...string) (all []flex.Reading) {
	t.Helper()
	for _, line := range lines {
		f := strings.Fields(line)
		var value float64
		if _, err := fmt.Sscan(f[3], &value); err != nil {
			t.Fatal(err)
		}
		all = append(all, flex.Reading{
			Label: flex.Label(f[0]), Span: flex.Span{From: at(t, f[1]), To: at(t, f[2])}, Value: flex.Micro(math.Round(value * 1e6)),
		})
	}
	return all
}

func TestHalfHours(t *testing.T) {
	const energy, register, in, out, power, site = "charger_consumption_energy_kwh", "charger_lifetime_consumption_energy_kwh",
		"boundary_lifetime_import_energy_kwh", "boundary_lifetime_export_energy_kwh", "boundary_import_kw", "provisional_consumption_kwh"

	for _, tt := range []struct {
		name     string
		metering settle.Metering
		readings []string
		want     string
	}{
		{"energies", settle.Asset, []string{energy + " 10:00 10:30 3.7", energy + " 10:30 11:00 0"}, "21=3700 22=0"},
		{"an energy not of a half-hour", settle.Asset, []string{energy + " 10:00 11:00 3.7", energy + " 10:15 10:45 1"}, ""},
		{"registers at both ends", settle.Asset, []string{register + " 9:59 10:00 100", register + " 10:30 10:30 101.2", register + " 11:30 11:30 104"}, "21=1200"},
		{"an energy stands above registers", settle.Asset, []string{register + " 10:00 10:00 100", register + " 10:30 10:30 101.2", energy + " 10:00 10:30 1.1"}, "21=1100"},
		{"net of export", settle.Boundary, []string{in + " 10:00 10:00 5", in + " 10:30 10:30 5.25", out + " 10:00 10:00 7", out + " 10:30 10:30 8"}, "21=-750"},
		{"export missing once", settle.Boundary, []string{in + " 10:00 10:00 5", in + " 10:30 10:30 5.25", out + " 10:00 10:00 7"}, ""},
		{"no export meter", settle.Boundary, []string{in + " 10:00 10:00 5", in + " 10:30 10:30 5.25"}, "21=250"},
		{"power end to end", settle.Boundary, []string{power + " 10:00 10:10 3", power + " 10:10 10:40 -1.5"}, "21=0"},
		{"power with a gap", settle.Boundary, []string{power + " 10:00 10:10 3", power + " 10:11 10:30 1.5"}, ""},
		{"power overlapping", settle.Boundary, []string{power + " 10:00 10:20 3", power + " 10:10 10:20 3", power + " 10:20 10:30 3"}, ""},
		{"power at an instant", settle.Boundary, []string{power + " 10:00 10:00 3"}, ""},
		{"a register stands above provisional and power", settle.Boundary, []string{in + " 10:00 10:00 5", in + " 10:30 10:30 6", site + " 10:00 10:30 2", power + " 10:00 10:30 8", site + " 10:30 11:00 2.5"}, "21=1000 22=2500"},
		{"another meter's readings", settle.Asset, []string{site + " 10:00 10:30 2"}, ""},
		{"power is rounded once", settle.Boundary, []string{power + " 10:00 10:30 6.188999"}, "21=3094"}, // 3,094.4995
		{"half a watt-hour", settle.Asset, []string{energy + " 10:00 10:30 0.0005", energy + " 10:30 11:00 0.000499"}, "21=1 22=0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := readings(t, tt.readings...)

			for range 2 { // in either order
				var got []string
				for _, m := range settle.HalfHours(tt.metering, all) {
					for n := range m.Day.Periods() {
						if e, known := m.At(n + 1); known {
							got = append(got, fmt.Sprintf("%d=%d", n+1, e))
						}
					}
				}
				if strings.Join(got, " ") != tt.want {
					t.Errorf("got %v, want %s", got, tt.want)
				}

				slices.Reverse(all)
			}
		})
	}
}

// On clock-change days every half-hour of the day finds its settlement period.
func TestHalfHours_ClockChange(t *testing.T) {
	for d, periods := range map[string]int{"2025-03-30": 46, "2025-10-26": 50, "2025-06-01": 48} {
		day := day(t, d)
		var all []flex.Reading
		for at := day.Start(); at.Before(day.Add(1).Start()); at = at.Add(30 * time.Minute) {
			all = append(all, flex.Reading{Label: flex.ChargerEnergy, Span: flex.Span{From: at, To: at.Add(30 * time.Minute)}, Value: 1e6})
		}
		got := settle.HalfHours(settle.Asset, all)
		if len(got) != 1 || len(got[0].Wh) != periods || got[0].Known != 1<<periods-1 {
			t.Errorf("%s: %d days, %+v", d, len(got), got)
		}
	}
}
