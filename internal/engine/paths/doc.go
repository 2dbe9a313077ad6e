// Package paths bounds what the best of many sequences of choices draw.
//
// A device, such as a heater, is in some state before each slot. Each choice that it has leads to a state after the slot, draws
// some energy and may fall short of what its users need. Of all sequences, those with the least total shortfall are the ones that may
// be followed. A step belongs to one of them if the least shortfall up to it, its own and the least from there on add up to the least
// of all. What is left after all other steps are dropped has these sequences and no other, and each state in it is reached and left by
// one. So the least and the most energy of a window are those of the shortest and the longest way from any of its states before the
// window to any after it, and they are exact.
package paths
