// Package wire is the contract: every request and answer of the interface as a struct,
// and the strict decoding of requests, which reports all faults of a request at once in
// the interface's words. It decides nothing: what a request means is the services' business.
//
// Names are exact, unknown ones are ignored, and a name given twice, data after the end,
// numbers that are not finite, bad UTF-8 and NUL are refused. Answers leave out what is
// absent, write lists as [] and never null, instants in UTC with the offset +00:00,
// wall times as HH:MM:SS and dates as YYYY-MM-DD.
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
