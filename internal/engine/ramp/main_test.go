package ramp_test

import (
	"os"
	"testing"

	"flexd/test/draws"
)

// TestMain tries the property 5,000 times, a fifth of that under the race detector.
func TestMain(m *testing.M) {
	draws.SetDefault("1000", "5000")
	os.Exit(m.Run())
}
