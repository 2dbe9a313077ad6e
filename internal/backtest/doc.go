// Package backtest calculates what a home battery would have saved in the past. It runs one
// through real loads and prices, half-hour by half-hour, with the planner of the service and
// forecasts of the same kind, and with three other planners for comparison.
//
// RunHome does the same for a home with a car: planned together, each device separately, and a
// lower bound of the cost of any plan.
package backtest
