// Package bitselect finds the n-th bit that is set in a word.
package bitselect
