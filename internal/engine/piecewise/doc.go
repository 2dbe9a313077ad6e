// Package piecewise holds continuous piecewise linear functions of one variable.
package piecewise
