package charge

import (
	"cmp"
	"slices"

	"flexd/internal/flex"
)

// openTier makes every segment of a tier charge.
func openTier(c []segment, t tier, reason Reason) {
	for i := range c {
		if c[i].tier == t {
			c[i].fill()
			c[i].reason = reason
		}
	}
}

// purchase is the result of buying energy from one tier.
type purchase struct {
	bought Joules
	// lower bound on the cost of this energy in the tier, in micro-pounds
	bound     float64
	threshold flex.Price // the highest price paid
	// the need was met, so that the threshold decided
	decided bool
}

// cheapestPurchase buys need from one tier at the least cost. It takes groups of equal price
// in rising order, each completely but the last.
//
// This is optimal: moving energy from a dearer segment to free time in a cheaper one always
// saves, so an optimum has no such pair. It is therefore a prefix of the order. The bound is
// the dual of this argument, at the price that decided.
func cheapestPurchase(c []segment, t tier, need Joules) purchase {
	order := make([]int, 0, segmentsUsual)
	for i := range c {
		if c[i].tier == t {
			order = append(order, i)
		}
	}

	var b purchase
	if need <= 0 || len(order) == 0 {
		b.decided = need <= 0
		return b
	}

	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(c[i].key, c[j].key)
	})
	for len(order) > 0 && b.bought < need {
		n, size := 1, c[order[0]].size()
		for n < len(order) && c[order[n]].key == c[order[0]].key {
			size += c[order[n]].size()
			n++
		}

		b.threshold = c[order[0]].key
		if need-b.bought < size {
			size = buyPart(c, order[:n], need-b.bought)
		} else {
			for _, i := range order[:n] {
				c[i].fill()
			}
		}

		b.bought += size
		order = order[n:]
	}

	b.decided = b.bought >= need
	b.bound = dualBound(c, t, b.bought, b.threshold)

	return b
}

// dualBound is the Lagrangian bound at a price. Energy is paid at that price, and everything
// cheaper is bought at the difference.
func dualBound(c []segment, t tier, energy Joules, threshold flex.Price) float64 {
	at := segment{price: threshold}
	sum := at.pay(energy)
	for i := range c {
		if c[i].tier == t && c[i].price < threshold {
			sum += c[i].pay(c[i].size()) - at.pay(c[i].size())
		}
	}

	return sum
}

// block is a run of adjacent segments of one price, of which a part will be bought.
type block struct {
	first, last int // segments
	size        Joules
	left, right bool // the segment before, or after, it charges already
}

// buyPart buys need from a group of equally cheap segments that has more energy than needed.
// It prefers the fewest starts, then the earliest time. It returns the bought energy: the
// need, rounded up to the minute at the free end.
//
// Filling a block between two charging ones removes a start, so the shortest of those are
// filled first: no other choice closes more gaps. The remaining need then extends charging
// blocks, which adds no start. Only what does not fit there begins new starts, in the fewest
// blocks that suffice.
func buyPart(c []segment, group []int, need Joules) Joules {
	blocks := blocksOf(make([]block, 0, stepsUsual), c, group)

	var bought Joules
	fillWhole := func(i int) {
		bought += fillBlock(c, blocks[i], need-bought)
		blocks = slices.Delete(blocks, i, i+1)
	}

	// Close gaps between charging blocks, the shortest first.
	for {
		gap := shortestGap(blocks, need-bought)
		if gap < 0 {
			break
		}
		fillWhole(gap)
	}

	// Extend blocks that charge already.
	for i := 0; i < len(blocks) && bought < need; {
		if blocks[i].left || blocks[i].right {
			fillWhole(i)
		} else {
			i++
		}
	}

	// Begin new starts, as few as possible.
	for starts := fewest(blocks, need-bought); bought < need; starts-- {
		fillWhole(earliest(blocks, need-bought, starts))
	}

	return bought
}

// shortestGap returns the shortest block between two charging ones that the need fills
// completely, or -1.
func shortestGap(blocks []block, need Joules) int {
	gap := -1
	for i, b := range blocks {
		if !b.left || !b.right || b.size > need {
			continue
		}
		if gap < 0 || b.size < blocks[gap].size {
			gap = i
		}
	}

	return gap
}

// blocksOf groups segments, given in order of time, into blocks. It appends them to the empty
// slice.
func blocksOf(blocks []block, c []segment, group []int) []block {
	on := func(i int) bool { return i >= 0 && i < len(c) && c[i].energy() > 0 }
	for _, i := range group {
		if n := len(blocks); n > 0 && blocks[n-1].last == i-1 {
			blocks[n-1].last = i
			blocks[n-1].size += c[i].size()
			continue
		}

		blocks = append(blocks, block{
			first: i,
			last:  i,
			size:  c[i].size(),
		})
	}

	for i := range blocks {
		blocks[i].left = c[blocks[i].first].running || on(blocks[i].first-1)
		blocks[i].right = on(blocks[i].last + 1)
	}

	return blocks
}

// fewest returns the least number of blocks that suffice for the need.
func fewest(blocks []block, need Joules) int {
	sizes := sizesOf(blocks)

	var n int
	for ; n < len(sizes) && need > 0; n++ {
		need -= sizes[n]
	}

	return n
}

// earliest returns the first block after which n-1 others suffice for the rest of the need.
func earliest(blocks []block, need Joules, n int) int {
	for i := range blocks {
		others := slices.Delete(slices.Clone(blocks), i, i+1)
		if largest(others, n-1) >= need-blocks[i].size {
			return i
		}
	}

	return 0
}

// largest returns the energy of the n largest blocks.
func largest(blocks []block, n int) Joules {
	var s Joules
	for _, size := range sizesOf(blocks)[:min(n, len(blocks))] {
		s += size
	}
	return s
}

func sizesOf(blocks []block) []Joules {
	sizes := make([]Joules, len(blocks))
	for i, b := range blocks {
		sizes[i] = b.size
	}
	slices.SortFunc(sizes, func(a, b Joules) int { return cmp.Compare(b, a) })

	return sizes
}

// fillBlock charges the need, or as much as fits, from the end of the block that is next to
// charging, else from its start.
func fillBlock(c []segment, b block, need Joules) Joules {
	backwards := b.right && !b.left

	var bought Joules
	for n := range b.last - b.first + 1 {
		i := b.first + n
		if backwards {
			i = b.last - n
		}

		k := &c[i]
		if need-bought >= k.size() {
			k.fill()
		} else if seconds := (int64(need-bought) + k.power - 1) / k.power; backwards {
			k.onFrom, k.onTo = max(k.from, floorMinute(k.to-seconds)), k.to
		} else {
			k.onTo = min(k.to, floorMinute(k.from+seconds+59))
		}

		bought += k.energy()
		if bought >= need {
			break
		}
	}

	return bought
}

func floorMinute(unix int64) int64 { return unix - unix%60 }
