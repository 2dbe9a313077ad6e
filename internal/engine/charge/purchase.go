package charge

import (
	"cmp"
	"slices"

	"flexd/internal/flex"
)

// openTier switches every segment of a tier on.
func openTier(c []segment, t tier, why Reason) {
	for i := range c {
		if c[i].tier == t {
			c[i].fill()
			c[i].reason = why
		}
	}
}

// purchase is what buying from one tier came to.
type purchase struct {
	taken Joules
	// no purchase of the same energy in the tier costs less, in micro-pounds
	bound     float64
	threshold flex.Price // the dearest price paid
	// the need was met, so that the threshold is what decided
	decided bool
}

// cheapestPurchase takes need from one tier at the least cost: whole groups of equal price in rising
// order, and the last group in part.
//
// It is optimal because moving energy from a dearer segment to free room in a cheaper one
// always pays, so that an optimum has no such pair: it is a prefix of the order. The
// bound is the dual of that argument, for the price that decided.
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
	for len(order) > 0 && b.taken < need {
		n, size := 1, c[order[0]].size()
		for n < len(order) && c[order[n]].key == c[order[0]].key {
			size += c[order[n]].size()
			n++
		}

		b.threshold = c[order[0]].key
		if need-b.taken < size {
			size = buyPart(c, order[:n], need-b.taken)
		} else {
			for _, i := range order[:n] {
				c[i].fill()
			}
		}

		b.taken += size
		order = order[n:]
	}

	b.decided = b.taken >= need
	b.bound = dualBound(c, t, b.taken, b.threshold)

	return b
}

// dualBound is the Lagrangian bound at a price: it pays the price for the energy, and takes
// everything cheaper at the difference.
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

// block is a stretch of neighbouring segments of one price, of which part will be bought.
type block struct {
	first, last int // segments
	size        Joules
	left, right bool // what lies before or after it charges already
}

// buyPart takes need out of a group of equally cheap segments that holds more, with the
// fewest starts and then the earliest, and returns what it took: the need, rounded up
// to the minute at the free end.
//
// A block between two charging stretches saves a start when it is filled whole, so the
// shortest of them go first: no choice closes more gaps. What is left then lengthens
// charging stretches, which costs no start; only what they cannot hold starts again, in
// the fewest blocks that can hold it.
func buyPart(c []segment, group []int, need Joules) Joules {
	blocks := blocksOf(make([]block, 0, stepsUsual), c, group)

	var taken Joules
	fillWhole := func(i int) {
		taken += fillBlock(c, blocks[i], need-taken)
		blocks = slices.Delete(blocks, i, i+1)
	}

	// Close gaps between charging blocks, the shortest first.
	for {
		gap := shortestGap(blocks, need-taken)
		if gap < 0 {
			break
		}
		fillWhole(gap)
	}

	// Lengthen what charges already.
	for i := 0; i < len(blocks) && taken < need; {
		if blocks[i].left || blocks[i].right {
			fillWhole(i)
		} else {
			i++
		}
	}

	// Start again, as seldom as possible.
	for starts := fewest(blocks, need-taken); taken < need; starts-- {
		fillWhole(earliest(blocks, need-taken, starts))
	}

	return taken
}

// shortestGap is the shortest block between two that charge which need fills whole, or -1.
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

// blocksOf appends segments, given in order of time, to no blocks, grouped.
func blocksOf(blocks []block, c []segment, group []int) []block {
	on := func(i int) bool { return i >= 0 && i < len(c) && c[i].taken() > 0 }
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

// fewest is the least number of blocks that hold need.
func fewest(blocks []block, need Joules) int {
	sizes := sizesOf(blocks)

	var n int
	for ; n < len(sizes) && need > 0; n++ {
		need -= sizes[n]
	}

	return n
}

// earliest is the first block that leaves a need which n-1 others can hold.
func earliest(blocks []block, need Joules, n int) int {
	for i := range blocks {
		others := slices.Delete(slices.Clone(blocks), i, i+1)
		if largest(others, n-1) >= need-blocks[i].size {
			return i
		}
	}

	return 0
}

// largest is what the n largest blocks hold.
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

// fillBlock charges need, or as much as fits, from the end of the block that something
// charging touches, else from its start.
func fillBlock(c []segment, b block, need Joules) Joules {
	backwards := b.right && !b.left

	var taken Joules
	for n := range b.last - b.first + 1 {
		i := b.first + n
		if backwards {
			i = b.last - n
		}

		k := &c[i]
		if need-taken >= k.size() {
			k.fill()
		} else if seconds := (int64(need-taken) + k.power - 1) / k.power; backwards {
			k.onFrom, k.onTo = max(k.from, floorMinute(k.to-seconds)), k.to
		} else {
			k.onTo = min(k.to, floorMinute(k.from+seconds+59))
		}

		taken += k.taken()
		if taken >= need {
			break
		}
	}

	return taken
}

func floorMinute(unix int64) int64 { return unix - unix%60 }
