// Package tariff turns the off-peak hours of a tariff, written as wall times of every day in a
// zone, into spans of the true time line, and a ready-by time on the wall into an instant.
//
// One rule applies on all days, including those on which the clocks change: a second is
// off-peak exactly if the wall clock then shows an off-peak time. A window within the hour
// that is skipped therefore does not occur that day, and one within the hour that is repeated
// occurs twice.
//
// # The text
//
// Off-peak hours are ranges HH:MM-HH:MM with commas between them, at most MaxRanges, from
// 00:00 to 24:00. A range is half-open. One whose end is before its start crosses midnight and
// becomes two. Ranges that overlap or touch are joined. A range without length is refused, as
// 00:00-00:00 could mean nothing or the whole day. An empty text is allowed only for the types
// single_rate and dynamic, which have no dearer hours: then all hours are off-peak. Any other
// text is flex.Malformed, with what would be right. Windows.String writes the normal form: in
// order, joined, cut at midnight. Parse of it gives the same windows.
//
// A zone is an IANA name in its own spelling. "" and "Local" are refused, as they would mean
// UTC and the zone of this machine. The rules of the zones are linked into the program
// (time/tzdata), so that two machines agree; they change with Go's releases.
//
// # Spans
//
// Between two changes of the clocks the wall clock is a fixed offset from UTC. Windows.Spans
// therefore cuts the requested span at those changes, takes the days of each piece by its
// offset, cuts their ranges to the piece, and joins those that touch. The spans are in order,
// do not touch, and lie within the requested span.
//
// # Ready-by times
//
// NextTimeOfDay is the first instant after another at which the wall clock shows a time. Each
// day has exactly one: the first of two if the clocks go back, and the end of the gap if they
// go forward over it. It uses the same pieces, from 26 h before the time would be in UTC,
// which is more than any zone's offset.
//
// Every result depends only on the arguments. There is a cache of zones; it has only names
// that exist, so a client cannot fill it.
package tariff
