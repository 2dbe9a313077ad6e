//go:build !race

package push_test

const scale = 1
