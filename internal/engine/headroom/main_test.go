package headroom_test

import (
	"os"
	"testing"

	"flexd/test/draws"
)

// TestMain tries every property 20,000 times, and a twentieth of that under the race detector,
// unless -rapid.checks sets another number.
func TestMain(m *testing.M) {
	draws.SetDefault("1000", "20000")
	os.Exit(m.Run())
}
