package problem_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs every property 2,000 times, or 300 times under the race detector, unless
// -rapid.checks sets another number.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
