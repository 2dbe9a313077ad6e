// Package certificate makes proofs of lower bounds that a checker can verify by itself.
package certificate
