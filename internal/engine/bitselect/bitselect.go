package bitselect

import (
	"math/bits"
)

const ones = 0x0101010101010101

// Sums returns, in byte i, how many bits of x are set in its bytes 0 to i.
func Sums(x uint64) uint64 {
	x -= x >> 1 & (0x55 * ones)
	x = x&(0x33*ones) + x>>2&(0x33*ones)
	return (x + x>>4) & (0x0f * ones) * ones
}

// Nth returns the position of the n-th bit set in x, given its sums; n is at least 1
// and at most their number.
func Nth(x, sums uint64, n uint32) uint32 {
	// a byte's top bit: its sum is n or more
	reached := (sums | 0x80*ones) - uint64(n)*ones
	at := uint32(bits.TrailingZeros64(reached&(0x80*ones))) & 0x38
	in := (n - 1 - uint32(sums<<8>>at&0xff)) & 7

	return at + uint32(nthInByte[uint32(x>>at&0xff)<<3|in])
}

// nthInByte holds the positions of the bits set in every byte, lowest first.
var nthInByte = func() [256 * 8]uint8 {
	var t [256 * 8]uint8
	for b := range 256 {
		n := 0
		for i := range 8 {
			if b>>i&1 == 1 {
				t[b<<3|n] = uint8(i)
				n++
			}
		}
	}

	return t
}()
