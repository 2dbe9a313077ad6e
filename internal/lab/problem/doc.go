// Package problem is the engine's file format: one planning problem a line of JSON in,
// one answer a line out. docs/engine.md lists the families and their fields.
//
// A line is decoded strictly: a name twice, a number out of range, series of different
// lengths or text after the value are refused, with what would be right. Names that the
// format does not know are left alone.
package problem
