// Package tariff turns the off-peak hours of a tariff, written as wall times of
// every day in a zone, into spans of the true time line, and a ready-by time on the
// wall into an instant.
//
// The one law, on days when the clocks change as on all others: a second is off-peak
// exactly if the clock on the wall then shows an off-peak time. So a window inside
// the hour that is skipped vanishes, and one inside the hour that comes twice comes
// twice.
package tariff
