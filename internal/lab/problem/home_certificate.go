package problem

import (
	"errors"
	"math"

	"flexd/internal/engine/site"
	"flexd/internal/lab/verify"
)

// certificateMargin is the part of a bound by which it is stated lower than it is proven, so that rounding on another
// machine refuses nothing.
const certificateMargin = 1e-10

// prove plans the home again, with a record of the search, and makes the proof of the bounds. The plan is that of this
// search, and its bound what the proof shows.
func (h *homeProblem) prove(w *Scratch) (Certificate, error) {
	result, proof := w.site.SolveProven(&h.Problem, &h.plans)
	h.result = result

	if err := h.check(w); err != nil {
		return Certificate{}, err
	}

	c := verify.NewSiteChecker(&h.Problem, result.Shortfall, result.Peak)
	var short []error

	for i := range proof.Trees {
		m := prover{checker: c, tree: &proof.Trees[i]}
		short = append(short, m.prove(h.bestValue(m.tree.Goal)))

		if m.tree.Goal == site.GoalCost {
			h.result.Bound = min(m.tree.Bound, result.Cost)
			h.result.Optimal = h.result.Cost-h.result.Bound <= 1e-6*max(1, result.Gross)
		}
	}

	h.keepNeeded(c, &proof)

	_, err := verify.SiteProof(&h.Problem, h.result, &proof)

	return Certificate{Site: &proof}, errors.Join(errors.Join(short...), err)
}

// bestValue is what the plan comes to of a goal.
func (h *homeProblem) bestValue(goal string) float64 {
	switch goal {
	case site.GoalShortfall:
		return h.result.Shortfall
	case site.GoalPeak:
		return h.result.Peak
	default:
		return h.result.Cost
	}
}

// keepNeeded drops the trees that prove no more than each car by itself.
func (h *homeProblem) keepNeeded(c *verify.SiteChecker, proof *site.Proof) {
	const rounding = 1e-6
	shortfall, peak := c.Least()
	needed := proof.Trees[:0]

	for _, tree := range proof.Trees {
		sufficient := tree.Goal == site.GoalShortfall && tree.Bound <= shortfall+rounding ||
			tree.Goal == site.GoalPeak && tree.Bound <= peak+rounding

		if !sufficient {
			needed = append(needed, tree)
		}
	}

	proof.Trees = needed
}

// prover finds what a tree of a search proves, and leaves out what that does not need.
type prover struct {
	checker *verify.SiteChecker
	tree    *site.Tree
	goal    float64 // what the plan comes to: no leaf needs to prove more
	failed  error
}

// prove works out the bound of the tree, and shortens it.
func (m *prover) prove(reached float64) error {
	m.goal = reached
	root := m.tree.Root
	all := m.checker.All()
	bound := min(reached, m.weigh(root, all, root.Dual))
	m.tree.Bound = bound - certificateMargin*max(1, math.Abs(bound))
	m.shorten(root, all, &site.Dual{})

	return m.failed
}

// bound is what multipliers prove of a case.
func (m *prover) bound(branch *verify.SiteCase, dual *site.Dual) float64 {
	bound, err := m.checker.Bound(m.tree.Goal, branch, dual)
	if err != nil {
		m.failed = err
	}

	return bound
}

// half is one half of a case.
func (m *prover) half(parent *verify.SiteCase, b *site.Branch, second bool) *verify.SiteCase {
	half, err := m.checker.Half(parent, b, second)
	if err != nil {
		m.failed = err
		return parent
	}

	return half
}

// weigh is the bound of a branch. A leaf without multipliers is given those of the branch above, or one that was found
// empty as many times the ray as are enough.
func (m *prover) weigh(b *site.Branch, branch *verify.SiteCase, above *site.Dual) float64 {
	if b.Dual == nil {
		b.Dual = above
	}

	if len(b.Halves) == 2 {
		first := m.weigh(b.Halves[0], m.half(branch, b, false), b.Dual)

		return min(first, m.weigh(b.Halves[1], m.half(branch, b, true), b.Dual))
	}

	best := m.bound(branch, b.Dual)
	if b.Ray == nil {
		return best
	}

	own := b.Dual
	for times := 1.0; times < 1e9 && best < m.goal; times *= 16 {
		with := own.Plus(b.Ray, times)
		if bound := m.bound(branch, with); bound > best {
			best, b.Dual = bound, with
		}
	}

	return best
}

// shorten makes leaves of branches that multipliers prove as a whole, and leaves out multipliers where those above do.
// It reports whether those above are needed.
func (m *prover) shorten(b *site.Branch, branch *verify.SiteCase, above *site.Dual) bool {
	if m.bound(branch, above) >= m.tree.Bound {
		b.Halves, b.Dual = nil, nil
		return true
	}

	leaf := len(b.Halves) == 0
	if !leaf && m.bound(branch, b.Dual) >= m.tree.Bound {
		b.Halves, leaf = nil, true
	}

	if leaf {
		return false
	}

	first := m.shorten(b.Halves[0], m.half(branch, b, false), b.Dual)
	second := m.shorten(b.Halves[1], m.half(branch, b, true), b.Dual)

	if !first && !second {
		b.Dual = nil
	}

	return false
}
