//go:build race

package street_test

func init() { nightCars, yearDays = 15, 4 }
