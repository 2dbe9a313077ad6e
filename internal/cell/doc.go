// Package cell moves organisations between the databases of a flexd, its cells. An organisation is served from one cell at a
// time; the others do not notice that it moves.
//
// # A move
//
//	step    old cell          new cell    what holds afterwards
//	leave   leaving                       every write to its records is refused (503): the fence of store
//	arrive  leaving           arriving    all of it is in both, the same, and changes in neither
//	go      gone              arriving    the decision, one commit in the old cell
//	wait    gone              arriving    every flexd knows, or serves nothing of the old cell any more
//	open    gone              (served)    writes are taken again
//	forget  (nothing)         (served)    the old cell has no row of it
//
// Move looks at both cells and continues from where a move was left: before the decision it may go on, or back, after it only
// on. So a mover may be killed at any point, and no two cells ever serve one organisation.
//
// A mover that has lost its move to another, by the number that each gives the old cell, decides nothing.
package cell
