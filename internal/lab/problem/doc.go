// Package problem has the engine's file format: each line of the input is one planning problem
// in JSON, each line of the output its answer. docs/engine.md lists the families and their
// fields.
//
// A line is decoded strictly. A repeated name, a number out of range, series of different
// lengths and text after the value are refused, with a message that says what would be right.
// Unknown names are ignored.
package problem
