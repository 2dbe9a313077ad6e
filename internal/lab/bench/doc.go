// Package bench times the planners on samples and holds excess cost, time and memory against
// their targets, for `flexd bench plan`.
package bench
