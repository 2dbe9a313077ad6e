package wave

import (
	"flexd/internal/engine/random"
	"flexd/internal/flex"
)

// SamplePrices returns the prices of n half-hours from noon, like those of a winter day in
// Great Britain: low at night, high from 16:00 to 19:00, with noise.
func SamplePrices(source *random.Source, n int) []flex.Price {
	prices := make([]flex.Price, n)
	for t := range prices {
		p := 55 + source.Between(-12, 12)
		switch hour := (12 + float64(t)/2) - 24*float64((24+t)/48); {
		case hour >= 16 && hour < 19:
			p += 70
		case hour < 5:
			p -= 30
		}

		prices[t] = flex.FromGBPPerMWh(p)
	}

	return prices
}

// SampleCurves sorts the prices, from noon on, for four tariff classes: one without
// off-peak times, and three that are off-peak for 4, 5 and 6 hours of the night.
func SampleCurves(prices []flex.Price) []Curve {
	return sampleCurves(prices, 24)
}

// sampleCurves is SampleCurves from a given half-hour of the day on.
func sampleCurves(prices []flex.Price, start int) []Curve {
	curves := make([]Curve, 4)
	pieces := make([]Piece, len(prices))
	for class := range curves {
		for t, p := range prices {
			night := (t + start) % 48
			pieces[t] = Piece{
				Start:   uint32(t) * halfHour,
				End:     uint32(t+1) * halfHour,
				Price:   p,
				OffPeak: class == 0 || night < 6+2*class,
			}
		}

		if err := curves[class].Sort(pieces, KeepAll); err != nil {
			panic(err) // more half-hours than MaxPieces
		}
	}

	return curves
}

// SampleCars returns n cars on the classes of SampleCurves: plugged in between
// noon and midnight, ready the next morning, one in four maximising, one in four allowed
// to use the peak.
func SampleCars(source *random.Source, n int) []Asset {
	cars := make([]Asset, n)
	watts := [...]uint32{3_600, 7_400, 7_400, 11_000}
	for i := range cars {
		a := &cars[i]
		a.From = uint32(source.Below(12 * 3600))
		a.To = 18*3600 + 900*uint32(source.Below(20))
		a.Watts = watts[source.Below(len(watts))]
		a.Need = 60 * uint32(30+source.Below(6*60))
		a.Class = uint16(source.Below(4))

		if source.Below(4) == 0 {
			a.Flags |= Peak
		}
		if source.Below(4) == 0 {
			a.Flags |= Maximise
		}
	}

	return cars
}
