//go:build race

package delivery_test

// scale divides the size of large tests: under the race detector they take ten times as long.
const scale = 5
