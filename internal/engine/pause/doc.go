// Package pause places one pause in a charging schedule that a client made itself.
//
// # Model
//
// Given are blocks of charging, prices by the half-hour, a power and the length d of the
// pause. The variable is its start s; [s, s+d) must lie inside one block and not before
// NotBefore. The paused energy is not made up, or made up in the first free time after the
// pause, or in one piece in the cheapest free time after it, in any case by ready-by.
//
// Objective: maximise the saving, which is the price summed over the pause less the price
// of what is made up. Of equal savings the earliest start. A saving below Worth makes no
// pause, and the schedule comes back as it was.
//
// # Method
//
// The price summed over [s, s+d) is piecewise linear in s. It bends only where s or s+d
// passes the edge of a price, so an optimum lies at one of those points or at an end of the
// block: all are tried. What is made up does not depend on where in its block the pause
// lies, since nothing inside a block is free, so it is priced once a block. For the
// cheapest free time the gaps are looked at from the last block back, each once.
//
// # Bound and certificate
//
// Every point that can be best was tried: the saving is its own bound. Package check works
// the schedule out again; the tests try every minute.
//
// # Complexity
//
// O(blocks + price periods). The grid is in ticks, seconds or minutes.
//
// # Sources
//
// The argument of breakpoints for piecewise linear functions; docs/engine.md, One pause.
package pause
