// Package pause places one pause in a schedule that a client made itself.
package pause
