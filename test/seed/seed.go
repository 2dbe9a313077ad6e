// Package seed gives the property tests of every package that imports it one fixed
// sequence of draws, so that the suite is the same run on every machine and day. The long
// campaigns (FLEXD_LONG) draw afresh each time; so does -rapid.seed=0 -rapid.checks=N with
// another seed on the command line.
package seed

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // declares the flag
)

func init() {
	if os.Getenv("FLEXD_LONG") != "" {
		return
	}
	if err := flag.Set("rapid.seed", "2026"); err != nil {
		panic(err) // the flag has another name now
	}
}
