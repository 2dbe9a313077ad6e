//go:build race

package sim_test

func init() { nightCars, yearDays = 15, 4 }
