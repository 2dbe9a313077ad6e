package wave

import (
	"bufio"
	"compress/gzip"
	"os"
	"strconv"
	"testing"

	"flexd/internal/engine/random"
	"flexd/test/draws"
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
	fleets := []*Study{{Rule: Rule{Saving: 1e9}}, {}, {Rule: DefaultRule}}
	if testing.Verbose() {
		names = append(names, "1 p", "2 p", "2 p or 2 %", "2 p or 2 %, 5 p to touch the running half-hour")
		fleets = append(fleets,
			&Study{Rule: Rule{Saving: 10_000, Running: 10_000}},
			&Study{Rule: Rule{Saving: 20_000, Running: 20_000}},
			&Study{Rule: Rule{Saving: 20_000, Percent: 2}},
			&Study{Rule: Rule{Saving: 20_000, Percent: 2, Running: 50_000}})
	}

	d := random.Source(81)
	for day := 24 + 48*10; day+96 < len(prices); day += 48 * draws.IfRaced(120, 12) {
		cars := SampleCars(&d, 300)
		for _, f := range fleets {
			f.Day(prices, day, cars)
		}
	}

	none, every := fleets[0].Cost, fleets[1].Cost
	for i, f := range fleets {
		share, kept := 100*float64(f.Pushed)/float64(f.Assets), 100*(none-f.Cost)/(none-every)
		t.Logf("%-46s %5.2f %% of the assets an update, %5.1f %% of the saving (%d updates of assets)", names[i], share, kept, f.Assets)
		if !draws.Raced && f.Rule == DefaultRule && (share > 5 || kept < 90) {
			t.Errorf("the default rule should push to at most 5 %% and keep at least 90 %%")
		}
	}
}
