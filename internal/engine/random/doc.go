// Package random is a deterministic source of numbers: the same seed gives the same numbers
// on every machine and in every version.
package random
