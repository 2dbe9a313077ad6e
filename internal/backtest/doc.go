// Package backtest asks what a home battery would have saved in the past: it takes one
// through real loads and prices, half-hour by half-hour, steered by the same
// planner on the same kind of guess as the service, and by three others to judge it by.
//
// RunHome does the same of a home with a car, planned as one and each device by itself, against a bound
// that nothing costs less than.
package backtest
