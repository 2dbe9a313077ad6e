//go:build !race

package delivery_test

const scale = 1
