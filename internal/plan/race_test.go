//go:build race

package plan_test

func init() { checks = "1000" } // each is ten times as slow, and nothing here shares memory
