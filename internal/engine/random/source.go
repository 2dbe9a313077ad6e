package random

// Source draws the numbers of a sample fleet: splitmix64, so that the same seed gives
// the same fleet on every machine and in every version.
type Source uint64

// Next returns 64 random bits.
func (d *Source) Next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb

	return z ^ z>>31
}

// Below returns a number from 0 to n-1; n is positive.
func (d *Source) Below(n int) int { return int(d.Next() % uint64(n)) }

// Between returns a number in [lo, hi).
func (d *Source) Between(lo, hi float64) float64 {
	return lo + (hi-lo)*(float64(d.Next()>>11)/(1<<53))
}
