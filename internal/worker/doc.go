// Package worker runs background jobs. A background job takes no input: it reads what is due,
// does it, and is safe to run twice or on several machines at once. It runs once every period,
// and sooner when a signal wakes it. The signal carries no data and may be lost: everything that
// is due is found at the next period anyway. A crash, a lost wake-up and normal operation
// therefore share one code path.
//
// # Runs
//
// A worker runs its job once when it starts, and never twice at the same time. A run whose report
// says More is followed by another at once. A wake-up starts a run no sooner than Rest after the
// end of the last one; wake-ups that arrive in that time are served by the same run.
//
// # Organisations
//
// Most jobs work for one organisation after the other, and again for each that has more to do
// (EachOrg). An organisation for which the job fails or panics delays no other; the run as a whole
// fails, and its error names those organisations. An organisation that is moving to another
// database is not a failure: its work waits until the move is over, and is then done by the run
// that serves it, in whichever database that is.
//
// # Failures
//
// A job that fails or panics is logged, counted, and run again at its next period or wake-up;
// there is no other retry. Last returns how the latest run went, and since when runs have failed.
// A run that does not end is not interrupted; HangsSince returns when such a run began.
//
// # Shutdown
//
// When the worker's context ends, so does the context of a run under way. The worker waits for
// that run to return. What the run had not committed is done by the next process.
package worker
