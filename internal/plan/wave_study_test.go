package plan

import (
	"bufio"
	"compress/gzip"
	"os"
	"strconv"
	"testing"
)

// realPrices reads the GB system price of 2016 to 2019, in GBP/MWh, a half-hour each.
func realPrices(t testing.TB) (prices []float64) {
	file, err := os.Open("testdata/gb_system_price_2016-2019.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(text); s.Scan(); {
		if p, err := strconv.ParseFloat(s.Text(), 64); err == nil {
			prices = append(prices, p)
		}
	}
	if len(prices) < 47_000 {
		t.Fatalf("%d prices", len(prices))
	}
	return prices
}

// How many cars get a new profile, and how much is saved, if a fleet follows a rule
// through half-hourly updates of real prices. What can be saved is what a fleet pays less
// that follows every change than one that follows none, at the prices that came.
func TestWave_PushStudy(t *testing.T) {
	prices := realPrices(t)
	names := []string{"none", "every change", "default: 1 p, begins within the hour"}
	fleets := []*WaveStudy{{Rule: WaveRule{Saving: 1e9}}, {}, {Rule: WaveDefault}}
	if testing.Verbose() {
		names = append(names, "1 p", "2 p", "2 p or 2 %", "2 p or 2 %, 5 p to touch the running half-hour")
		fleets = append(fleets,
			&WaveStudy{Rule: WaveRule{Saving: 10_000, Running: 10_000}},
			&WaveStudy{Rule: WaveRule{Saving: 20_000, Running: 20_000}},
			&WaveStudy{Rule: WaveRule{Saving: 20_000, Percent: 2}},
			&WaveStudy{Rule: WaveRule{Saving: 20_000, Percent: 2, Running: 50_000}})
	}
	d := FleetDice(81)
	for day := 24 + 48*10; day+96 < len(prices); day += 48 * ifRaced(120, 12) {
		cars := WaveSampleCars(&d, 300)
		for _, f := range fleets {
			f.Day(prices, day, cars)
		}
	}
	none, every := fleets[0].Cost, fleets[1].Cost
	for i, f := range fleets {
		share, kept := 100*float64(f.Pushed)/float64(f.Assets), 100*(none-f.Cost)/(none-every)
		t.Logf("%-46s %5.2f %% of the assets an update, %5.1f %% of the saving (%d updates of assets)", names[i], share, kept, f.Assets)
		if !Raced && f.Rule == WaveDefault && (share > 5 || kept < 90) {
			t.Errorf("the default rule should push to at most 5 %% and keep at least 90 %%")
		}
	}
}
