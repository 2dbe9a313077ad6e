//go:build race

package draws

const raced = true
