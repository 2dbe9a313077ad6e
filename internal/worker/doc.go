// Package worker runs background jobs. A background job takes no input: it reads what should be, does it,
// and is safe to run twice or on several machines at once. It runs on a period, and sooner
// when it is woken by a signal that carries no data; the period is the truth, so that a
// crash, a lost wake-up and ordinary life share one path.
//
// A worker has one run of its job at a time, the first at once. A run that reports More is followed by another at once. After a
// wake-up the worker waits until Rest is over since its last run; what woke it meanwhile the next run does too.
//
// Most jobs work for one organisation after the other, again and again while one has more to do (EachOrg). One for which a job fails or panics holds up no other; the run
// fails all the same, and says of which organisations it was. An organisation that moves to another database fails no run: its
// work waits, and is done by the run that finds it served again, in whichever database.
//
// A job that fails or panics is logged, counted and run again at its period or wake-up: there is no other retry. Last says how the
// latest run went and since when runs fail. A run that does not end is ended by nobody; HangsSince says since when it is under way. When the context ends, so does that of a run
// under way, and the worker waits until the run has returned: what it had not committed the next process does.
package worker
