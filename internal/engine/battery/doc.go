// Package battery plans one battery at a home with a load and perhaps solar panels: free to
// move any energy (Storage), or by the modes that home batteries accept (ModeProblem).
//
// # Model of Storage
//
// For slot t let the variable y[t] be the change of stored energy and s[t] what is stored
// after it:
//
//	minimise    sum of g[t](y[t])  -  Terminal s[n]
//	subject to  s[t] = s[t-1] + y[t],  s[0] = Init
//	            Min[t] <= s[t] <= Max[t],  -Discharge/eff <= y[t] <= Charge eff
//
// g[t] prices what goes through the home's meter, load less solar power plus what the battery
// draws: at the import price above zero, at the export price below, plus wear of discharging.
// It is continuous and piecewise linear, and convex unless a price is negative or exporting
// earns more than importing costs. A grid limit that cannot be kept is a penalty (breach).
//
// # Method
//
// Dynamic programming over the value V[t](s), the least cost from slot t on with s stored:
// V[t](s) = min over y of g[t](y) + V[t+1](s+y), an infimal convolution.
//
//   - All g convex: the slope trick. The slopes of an infimal convolution of convex piecewise
//     linear functions are the slopes of both, sorted. V is a sorted list of slopes, a slot
//     merges its few pieces in, and the bounds of s cut length off both ends. Energy that is
//     cut off at the cheap end is used in any case; it is added to the slot that it came from.
//     At the first slot all y are known, without a stored V.
//   - Otherwise V is kept as a curve with all its kinks, convex or not (package piecewise):
//     the sum with a straight piece is a minimum over a sliding window.
//
// # Model of ModeProblem
//
// Each slot takes one of five modes; a mode moves a fixed energy, or as far as the battery
// goes. A change of mode costs SwitchCost, and the change back to SELF_USE after the end may
// cost ReturnCost. Where buying for later does not pay, the chosen plan among those of equal
// cost is the one that is at SELF_USE for longer and discharges sooner. Stored energy is in
// whole watt-hours. The value is computed backward on a grid of levels for each mode before,
// linear between levels; then a beam of the most promising paths is followed forward with the
// device's exact arithmetic.
//
// # Bound and certificate
//
// Storage is solved exactly, so the value at Init is the bound; only a curve of more than
// MaxKinks kinks is lowered, and the plan then says its gap. The certificate of the convex
// case is the multiplier of each balance, what a stored kWh is worth after each slot (Duals);
// of the other case the curves V (CostToGo). The bound of a plan by modes is that of the same
// battery as Storage, which may move as it likes: valid, not tight.
//
// # Complexity
//
// Convex: O(n k) for n slots and k slopes in use, microseconds a day. Not convex: proportional
// to the kinks of all V. Modes: O(n levels) and O(n beam).
//
// # Sources
//
// Infimal convolution: R. T. Rockafellar, Convex Analysis, section 5 (1970). Sliding window
// minimum: D. Lemire, Nordic Journal of Computing 13 (2006). docs/engine.md, A battery.
package battery
