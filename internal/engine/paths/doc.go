// Package paths computes the least and the most energy that a device can draw in a window
// while it follows one of its sequences of choices with the least shortfall.
//
// A device, such as a heater, is in some state before each slot. Each choice leads to a state
// after the slot, draws some energy and may fall short of what its users need. Only sequences
// with the least total shortfall may be followed. A step belongs to such a sequence if the
// least shortfall before it, its own, and the least after it add up to the least total. When
// all other steps are removed, the graph that remains has exactly these sequences, and each of
// its states is part of one. So the least and the most energy of a window are the lengths of
// the shortest and the longest path from any of its states before the window to any after it,
// and they are exact.
package paths
