// Package headroom says what the caps of a fleet, a group and a site leave to each car, and
// plans cars within it.
package headroom
