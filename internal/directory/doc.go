// Package directory finds metering points by the numbers, postcodes and addresses by which
// people name them. Its sources are the store's own list, a company's own service, or the
// industry's (ECOES). It never guesses: if two points could be meant, there is no match.
//
// # Matching
//
// An address is split into flat, number, building and street, in capitals and without
// abbreviations. Candidates with its postcode are ranked by the number of words that they
// share with it. One letter may be wrong in a word of five or more letters, two in one of nine
// or more, none in a word with a digit. If a number such as 1/10 may mean two things, both are
// tried. The best candidate is a match only if no other could be meant; otherwise the failure
// is flex.Unclear.
//
// # Sources outside flexd
//
// Distant asks such a source, at most [LookupTimeout] for each question. Answers are cached in
// memory ([DetailsLife], [SearchLife]), failures never. After [MaxFailures] failures in a row
// nothing is asked for [PauseAfter]; then one question is sent to find out whether the source
// works again. A late answer is flex.TimedOut, a failure flex.Unavailable.
//
// References in a search's answer are sealed for the organisation that asked, and expire. Logs
// show only the last four digits of an MPAN.
package directory
