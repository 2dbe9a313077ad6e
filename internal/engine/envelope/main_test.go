package envelope

import (
	"os"
	"testing"

	"flexd/test/draws"
)

// TestMain tries every property 5,000 times, a tenth of that under the race detector, unless
// -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	draws.SetDefault("500", "5000")
	os.Exit(m.Run())
}
