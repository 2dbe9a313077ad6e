// Package wave plans a whole fleet of cars without shared caps anew after a price change, with
// the half-hours of a window as the bits of a word.
package wave
