package wire

//go:generate go run ../openapi

// The limits of a request. Fields with a narrower or wider one say so in their tag.
const (
	MaxBody         = 1 << 20   // bytes of a JSON body
	MaxForm         = 4 << 10   // bytes of a form
	MaxReadingsBody = 256 << 20 // bytes of a batch of readings, inflated
	MaxReadings     = 1_000_000 // readings in a batch
	MaxDepth        = 32        // objects and lists inside each other
	MaxText         = 1 << 10   // bytes of a string
	MaxItems        = 1000      // items of a list
	// faults reported of one request; the rest is cut off
	MaxFaults = 100
)
