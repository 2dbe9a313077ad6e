// Package pause places one pause in a charging schedule that a client made itself.
//
// # Model
//
// The input is blocks of charging, prices by the half-hour, a power and the length d of the
// pause. The variable is its start s; [s, s+d) must lie inside one block and not before
// NotBefore. The paused energy is not made up, or made up in the first free time after the
// pause, or in one piece in the cheapest free time after it, in any case by ready-by.
//
// Objective: maximise the saving, which is the price summed over the pause less the price of
// what is made up. Among equal savings, the earliest start. If the saving is below Worth there
// is no pause, and the schedule is returned unchanged.
//
// # Method
//
// The price summed over [s, s+d) is piecewise linear in s. It bends only where s or s+d passes
// the edge of a price, so an optimum lies at one of those points or at an end of the block:
// all are tried. The cost of what is made up does not depend on the pause's place within its
// block, since no time inside a block is free, so it is calculated once a block. To find the
// cheapest free time, the gaps are examined from the last block backwards, each once.
//
// # Bound and certificate
//
// Every point that can be optimal was tried: the saving is its own bound. Package check
// recalculates the schedule; the tests try every minute.
//
// # Complexity
//
// O(blocks + price periods). The grid is in ticks, seconds or minutes.
//
// # Sources
//
// The argument of breakpoints for piecewise linear functions; docs/engine.md, One pause.
package pause
