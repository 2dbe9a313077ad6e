// Package tariff turns the off-peak hours of a tariff, written as wall times of
// every day in a zone, into spans of the true time line, and a ready-by time on the
// wall into an instant.
//
// The one law, on days when the clocks change as on all others: a second is off-peak
// exactly if the clock on the wall then shows an off-peak time. So a window inside
// the hour that is skipped vanishes, and one inside the hour that comes twice comes
// twice.
//
// # The text
//
// Off-peak hours are ranges HH:MM-HH:MM with commas between them, at most MaxRanges, from 00:00 to 24:00. A range is half-open. One whose end comes before
// its start goes over midnight: it is its two halves. Ranges that overlap or touch are one. A range without length is refused, as 00:00-00:00 might
// mean nothing or the whole day. An empty text is allowed for the types single_rate and dynamic alone, by which no hour is dearer: then all
// hours are off-peak. Whatever else is written is flex.Malformed, and says what would be right. Windows.String writes the one normal form: rising, joined,
// midnight cut. Parse of it gives the same windows.
//
// A zone is an IANA name in its own spelling. "" and "Local" are refused: they would mean UTC and the zone of this machine. The rules of the zones are
// linked into the program (time/tzdata), so that two machines agree; they change with Go's releases.
//
// # Spans
//
// Between two changes of the clocks the wall clock is a fixed offset from UTC. Windows.Spans therefore cuts the time asked for at those changes, takes the days of
// each piece by its offset, cuts their ranges to the piece, and joins what touches. The spans are in order, do not touch, and lie within the span asked for.
//
// # Ready-by times
//
// NextTimeOfDay is the first instant after another at which the wall shows a time. Each day has exactly one: the first of two if the clocks go back, and the end of
// the gap if they go forward over it. It walks the same pieces, from 26 h before the time would be in UTC, which is more than any zone's offset.
//
// Everything here is a function of its arguments, but for a cache of the zones that were asked for. Only names that exist are kept, so a client cannot
// fill it.
package tariff
