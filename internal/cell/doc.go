// Package cell moves organisations between the databases (cells) of a flexd. An organisation
// is served from one cell at a time; other organisations do not notice the move.
//
// # A move
//
//	step    old cell          new cell    what holds afterwards
//	leave   leaving                       every write to its records is refused (503): the fence of store
//	arrive  leaving           arriving    all of it is in both, the same, and changes in neither
//	go      gone              arriving    the decision, one commit in the old cell
//	wait    gone              arriving    every flexd knows, or serves nothing of the old cell any more
//	open    gone              (served)    writes are accepted again
//	forget  (nothing)         (served)    the old cell has no row of it
//
// Move reads the state in both cells and continues from there. Before the step go it may
// continue or go back, after it it can only continue. The process that moves may therefore be
// killed at any point, and no two cells ever serve one organisation.
//
// Each attempt at a move has a number, which the old cell gives. An attempt that another one
// has replaced cannot take the step go.
package cell
