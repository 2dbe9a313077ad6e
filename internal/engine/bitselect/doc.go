// Package bitselect finds the n-th bit that is set in a word (select), in a few operations
// without a branch: the numbers of set bits in all bytes are summed in one word, then a table
// gives the bit in its byte. S. Vigna, Broadword Implementation of Rank/Select Queries (2008).
package bitselect
