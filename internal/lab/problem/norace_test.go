//go:build !race

package problem_test

const checks = "2000"
