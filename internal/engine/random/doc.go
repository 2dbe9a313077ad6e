// Package random is a deterministic random source, splitmix64 (Steele, Lea and Flood, Fast
// Splittable Pseudorandom Number Generators, 2014): the same seed gives the same numbers on
// every machine and in every version. Planners break ties by it, and samples are made of it.
package random
