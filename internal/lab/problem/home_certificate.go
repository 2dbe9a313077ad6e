package problem

import (
	"errors"
	"math"

	"flexd/internal/engine/site"
	"flexd/internal/lab/verify"
)

// certificateMargin is how much lower a bound is stated than it is proven, as a fraction of
// the bound, so that rounding on another machine does not make the check fail.
const certificateMargin = 1e-10

// prove plans the home again, records the search, and makes the proof of the bounds. The
// answer then has the plan of this search, and the bound that the proof shows.
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

	h.dropUnneeded(c, &proof)

	_, err := verify.SiteProof(&h.Problem, h.result, &proof)

	return Certificate{Site: &proof}, errors.Join(errors.Join(short...), err)
}

// bestValue returns the plan's value of a goal.
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

// dropUnneeded drops the trees that prove no more than what each car can reach alone.
func (h *homeProblem) dropUnneeded(c *verify.SiteChecker, proof *site.Proof) {
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

// prover computes the bound that a tree of a search proves, and removes what the proof does
// not need.
type prover struct {
	checker   *verify.SiteChecker
	tree      *site.Tree
	planValue float64 // the plan's value: no leaf needs to prove more
	failed    error
}

// prove computes the bound of the tree, and shortens it.
func (m *prover) prove(reached float64) error {
	m.planValue = reached
	root := m.tree.Root
	all := m.checker.All()
	bound := min(reached, m.boundOf(root, all, root.Dual))
	m.tree.Bound = bound - certificateMargin*max(1, math.Abs(bound))
	m.shorten(root, all, &site.Dual{})

	return m.failed
}

// bound returns the bound that multipliers prove for a case.
func (m *prover) bound(branch *verify.SiteCase, dual *site.Dual) float64 {
	bound, err := m.checker.Bound(m.tree.Goal, branch, dual)
	if err != nil {
		m.failed = err
	}

	return bound
}

// half returns one half of a case.
func (m *prover) half(parent *verify.SiteCase, b *site.Branch, second bool) *verify.SiteCase {
	half, err := m.checker.Half(parent, b, second)
	if err != nil {
		m.failed = err
		return parent
	}

	return half
}

// boundOf returns the bound of a branch. A leaf without multipliers uses those of the branch
// above. A leaf that the search found to have no plan uses as large a multiple of its ray as
// is enough.
func (m *prover) boundOf(b *site.Branch, branch *verify.SiteCase, above *site.Dual) float64 {
	if b.Dual == nil {
		b.Dual = above
	}

	if len(b.Halves) == 2 {
		first := m.boundOf(b.Halves[0], m.half(branch, b, false), b.Dual)

		return min(first, m.boundOf(b.Halves[1], m.half(branch, b, true), b.Dual))
	}

	best := m.bound(branch, b.Dual)
	if b.Ray == nil {
		return best
	}

	own := b.Dual
	for times := 1.0; times < 1e9 && best < m.planValue; times *= 16 {
		with := own.Plus(b.Ray, times)
		if bound := m.bound(branch, with); bound > best {
			best, b.Dual = bound, with
		}
	}

	return best
}

// shorten makes a leaf of every branch that its own multipliers prove as a whole. It removes
// the multipliers of a branch if those of the branch above prove it. It reports whether those
// above are needed.
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
