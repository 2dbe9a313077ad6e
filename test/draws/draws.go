// Package draws says how many random problems a property test tries. The race detector
// makes arithmetic ten to twenty times as slow, so that tests look at fewer under it.
package draws

import "flag"

// Raced reports whether the race detector is on.
const Raced = raced

// IfRaced returns a size under the race detector, and without it.
func IfRaced(slow, plain int) int {
	if Raced {
		return slow
	}
	return plain
}

// SetDefault sets how often rapid tries each property, unless -rapid.checks says otherwise.
// A TestMain calls it first.
func SetDefault(slow, plain string) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}

	checks := plain
	if Raced {
		checks = slow
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err) // the test does not import rapid
	}
}
