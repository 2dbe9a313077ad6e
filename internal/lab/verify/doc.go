// Package verify checks plans of slots, storage and fleets, and the certificates of their
// bounds (package certificate). It shares no code with the planners and uses no figure that it
// has not calculated itself.
//
// Fleet adds the loads up the tree of caps, prices the plan, and computes the Lagrangian bound
// at the plan's prices with algorithms of its own: sorting for a car, convex hulls for a
// battery. The proofs by potentials are checked at the corners of the parts of the plane of
// (state before, state after) in which potential and cost are linear; see SlotsProof. The tree
// of a site is checked by SiteChecker.
package verify
