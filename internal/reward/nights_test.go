//go:build !race

package reward_test

// nights of the simulated quarter.
const nights, firstNight = 90, 0
