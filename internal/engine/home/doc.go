// Package home says what is assumed of a home battery of which only power and capacity are
// known, and what energy left in it is worth.
package home
