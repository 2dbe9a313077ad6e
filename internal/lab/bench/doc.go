// Package bench measures the planners on samples and compares excess cost, time and memory
// with their targets, for `flexd bench plan`.
package bench
