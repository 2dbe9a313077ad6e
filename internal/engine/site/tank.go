package site

import "math"

// Breach is the first slot after which a tank is outside its bounds, whatever its element
// does. Stored is the possible level that is nearest to the bounds: below Min, or above Max.
// It is in neither range if the tank is too cold with the element off and too hot with it on
// (Coarse).
type Breach struct {
	Slot   int
	Stored float64 // kWh
	Coarse bool
}

// Breach finds the first slot after which no schedule of the element keeps the tank within its
// bounds, in slots of the given hours. A tank without a breach may still have no plan: the
// main fuse is not checked, and all levels between two possible levels of the same count are
// taken to be possible.
func (k *Tank) Breach(hours float64) (Breach, bool) {
	n := len(k.Draw)
	low, high := make([]float64, n+1), make([]float64, n+1)

	for i := range low {
		low[i], high[i] = 1, 0 // an empty range
	}

	low[0], high[0] = k.Init, k.Init
	free := *k
	free.Min, free.Max = math.Inf(-1), math.Inf(1)

	for t := range n {
		coldest, hottest := math.Inf(1), math.Inf(-1)
		isMet := false

		for i := t + 1; i >= 0; i-- {
			free.reach(t, i, hours, low, high)

			if low[i] > high[i] {
				continue
			}

			coldest, hottest = min(coldest, low[i]), max(hottest, high[i])
			isMet = k.clamp(&low[i], &high[i]) || isMet
		}

		if !isMet {
			return k.breach(t, coldest, hottest), true
		}
	}

	return Breach{}, false
}

// clamp cuts a range of levels to the bounds. It reports whether anything is left of it.
func (k *Tank) clamp(low, high *float64) bool {
	const rounding = 1e-7
	*low, *high = max(*low, k.Min-rounding), min(*high, k.Max+rounding)

	if *low <= *high {
		return true
	}

	*low, *high = 1, 0

	return false
}

// breach returns how far the levels after a slot are outside the bounds, if none is within
// them.
func (k *Tank) breach(t int, coldest, hottest float64) Breach {
	if hottest < k.Min {
		return Breach{Slot: t, Stored: hottest}
	}

	if coldest > k.Max {
		return Breach{Slot: t, Stored: coldest}
	}

	return Breach{
		Slot:   t,
		Stored: coldest,
		Coarse: true,
	}
}
