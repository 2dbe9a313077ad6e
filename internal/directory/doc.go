// Package directory knows metering points: it reads the numbers, postcodes and addresses
// by which people name them, finds the point that is meant, and asks the places where
// points are listed: the store's own list, a company's own service, or the industry's.
// It never guesses: two points that could both be meant are no match.
package directory
