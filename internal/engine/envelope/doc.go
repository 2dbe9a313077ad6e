// Package envelope says exactly what cars that are plugged in can draw together: the most and
// the least in any set of slots, and whether they can follow a profile.
//
// # Model
//
// Time is cut into slots. A car draws at most its power, in the seconds of a slot that its
// hours permit. By the end of its hours it has drawn at least Least and at most Most. So what
// a car can draw is a set of vectors, one number for each slot; what the fleet can draw is the
// sum of these sets. Energies are joules, in integers: a watt for a second.
//
// Cars may share a fuse, which limits what they draw together in each slot. Each car is behind
// one at most. Caps of fleets are not part of the model.
//
// # Envelope
//
// In a set S of slots a car draws min(Most, power * seconds(S)) at most, and at least max(0,
// Least - power * seconds(not S)). All cars reach their bound at the same time, so the fleet's
// bound is the sum. Cars with the same hours depend on S by the same number, its permitted
// seconds; their sum is a concave curve of that number, bent where a car is full. Envelope
// keeps these curves: as many as there are different hours, with no loss.
//
// Cars behind a fuse compete, so their bounds are no sums. They are flows from cars to slots:
// the most of S is found by moving what is drawn out of S into it, along paths on which cars
// pass on room under the fuse, until no path is left (Edmonds and Karp). From a window to the
// next little has to be moved, so one flow serves all windows.
//
// # Follow
//
// The fleet can draw a profile d exactly when, for every set S of slots,
//
//	Least(S) <= d(S) <= Most(S)
//
// This is Hoffman's circulation theorem for cars and slots. A profile may leave slots free:
// then it is for sets of the others. Follow finds a flow: what a car need not draw, or draws
// in a free slot, goes to one more slot, the rest, so that every car has a fixed sum to place.
// It begins with a greedy flow and pushes surplus between slots by labels (push-relabel on the
// slots; the cars are the arcs, and so are the paths of cars behind a fuse, which keeps the
// labels valid as for any exchange in a polymatroid). In the end either every slot has what
// the profile asks for, and each car's part is known, or the surplus that is left reaches no
// slot with a deficit. Then the slots that it reaches are a set for which the condition fails:
// the certificate, two numbers that anybody can add up again.
//
// # Complexity
//
// With n cars, h different hours and T slots: Envelope takes O(n log n), a bound O(h log n),
// Follow O(n T) memory and O(n T^3) time at worst, far less as measured. Cars behind fuses
// take a search for each window, over words of 64 slots.
//
// # Sources
//
// A. J. Hoffman, Some recent applications of the theory of linear inequalities to extremal
// combinatorial analysis (1960). A. Goldberg and R. Tarjan, A new approach to the maximum-flow
// problem (1988). J. Edmonds and R. Karp, Theoretical improvements in algorithmic efficiency
// for network flow problems (1972). S. Fujishige, Submodular functions and optimization
// (2005), generalised polymatroids.
package envelope
