// Package backtest asks what a home battery would have saved in the past: it takes one
// through real loads and prices, half-hour by half-hour, steered by the same
// planner on the same kind of guess as the service, and by three others to judge it by.
package backtest
