// Package charge plans one car: when it draws power between plug-in and ready-by, at the
// least cost under its duties, with a proven lower bound and a reason for every period.
package charge
