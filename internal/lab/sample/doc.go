// Package sample makes sample fleets, the same for the same seed.
package sample
