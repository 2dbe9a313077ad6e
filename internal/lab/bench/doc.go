// Package bench times the planners and holds them against their targets, for `flexd
// bench plan`.
package bench
