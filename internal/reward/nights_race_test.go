//go:build race

package reward_test

// nights of the simulated quarter: the race detector slows SQLite some twentyfold, so that
// under it three weeks must do. They hold the clock change.
const nights, firstNight = 21, 45
