package charge_test

import (
	"os"
	"testing"

	"flexd/test/draws"
)

// TestMain tries every property 20,000 times, a twentieth of that under the race detector,
// unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	draws.SetDefault("1000", "20000")
	os.Exit(m.Run())
}
