// Package sample makes sample fleets of cars and batteries, the same for the same random
// source, for benchmarks and tests.
package sample
