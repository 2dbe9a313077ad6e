// Package operations answers what an operator asks at night: how the fleet is, and what needs
// looking at.
//
// The fleet is read whole, side by side, and kept for some seconds: its counts, what it will
// draw half-hour by half-hour (Outlook), and which assets will fall short. An exception is
// something that somebody should look at. There is one list of them: the console, GET
// /operations/exceptions, flexd doctor and the metrics show the same, so that none of them says
// that all is well while another knows better. Kinds names what can be wrong.
package operations
