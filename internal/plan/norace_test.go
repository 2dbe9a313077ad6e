//go:build !race

package plan

// Raced says that the race detector is off.
const Raced = false
