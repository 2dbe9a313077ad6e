// Package directory knows metering points: it reads the numbers, postcodes and addresses
// by which people name them, finds the point that is meant, and asks the places where
// points are listed: the store's own list, a company's own service, or the industry's (ECOES).
// It never guesses: two points that could both be meant are no match.
//
// # Matching
//
// An address is taken apart into flat, number, building and street, in capitals and without abbreviations. Candidates of its postcode are ranked by how many words they
// share; one letter may be wrong in a word of five or more, two in one of nine or more, none in a word with a digit. Where a number such as 1/10 may mean two things
// both are tried. The best candidate is a match only if no other could be meant; otherwise the failure is flex.Unclear.
//
// # Sources that are not our own
//
// Distant asks one at most [LookupTimeout] a question. Answers are remembered in memory ([DetailsLife], [SearchLife]), failures never. After
// [MaxFailures] in a row nothing is asked for [PauseAfter], then one question is let through to see whether the source is back. A late answer is
// flex.TimedOut, a failure flex.Unavailable.
//
// References that a search gives out are sealed for the organisation that asked and end after a time. MPANs are shown in logs by their last four
// digits.
package directory
