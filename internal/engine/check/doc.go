// Package check verifies plans against the rules (laws) of a schedule before they are sent:
// Charge for one car, Pause for a client's own schedule, Modes for a battery. An error names
// the law that the plan breaks; such a plan must not be sent.
//
// It shares no code with the planners and uses no figure of a plan that it has not calculated
// itself. Feasibility is checked on each atom, a span of time in which neither problem nor
// plan changes. Optimality is checked by the certificate: for a car the Lagrangian bound at
// the plan's threshold price, which holds for any price, must come within rounding of the
// plan's cost. A check is linear in the atoms.
//
// The laws, as errors name them: S1 limits, S2 shape of the steps, S3 and S4 the need and its
// shortfall, S5 peak time, S6 charge-now, S7 mode and least cost, S10 nothing in the past, S11
// the end, S12 pauses.
package check
