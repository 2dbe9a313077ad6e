// Package piecewise has continuous piecewise linear functions of one variable, convex or not,
// as dynamic programmes with a continuous state need them: the pointwise minimum (Lower), the
// infimal convolution with a straight line (Convolver), the restriction to an interval (Clip),
// and a lower function with fewer points (Coarsen).
//
// The convolution of a function c with a line g over [from, to] is, with c tilted by the slope
// of g, the minimum of c over a sliding window: O(points) with a monotone queue.
//
// Two tolerances keep rounding from adding points: arguments closer than SameX are one, and a
// point within sameV of the line through its neighbours lies on it.
package piecewise
