package instruct

import (
	"os"
	"testing"

	"flexd/test/draws"
	_ "flexd/test/seed"
)

// TestMain tries every property 5,000 times, unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	draws.SetDefault("300", "5000")
	os.Exit(m.Run())
}
