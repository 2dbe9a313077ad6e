// Package settle turns readings into delivered flexibility and money: which half-hours a
// flex event changed, what would have been used without it, what that was worth, and
// whose share it is. It only computes: the same case gives the same bytes at any time, on
// any machine.
//
// Signs are the interface's: energy is net import, flexed energy is metered less
// baseline, so that turning down is negative, and earns at a positive price.
package settle
