// Package bitselect finds the n-th bit that is set in a word (select), in a few operations
// without a branch: sums of set bits by byte side by side in one word, then a table for the
// byte. S. Vigna, Broadword Implementation of Rank/Select Queries (2008).
package bitselect
