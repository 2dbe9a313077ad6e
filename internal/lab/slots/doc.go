// Package slots plans one car in slots of one length, with a least power, a cost of starts and
// a least run.
package slots
