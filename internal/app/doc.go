// Package app wires flexd together: it opens the store, makes the services, runs the
// background jobs and serves the transports. The program, the simulation and the tests all
// start flexd through it.
//
// # Advancing a sandbox clock
//
// An organisation's sandbox clock is advanced from one instant at which something of this
// organisation is due to the next. At each instant the organisation's jobs do what is due, its
// endpoints receive the resulting pushes, and then the clock is moved to the next. No other
// organisation is affected: its jobs are not run, and its endpoints are not waited for.
//
// addJobs is the one list of background jobs. Each is added with its part in an advance:
//
//   - next returns the first instant after a given one at which the job is due for the
//     organisation. For the zero time, it returns an instant in the past if something is due
//     already. An advance reads most of these instants by one statement (store.Tx.AskDue), and
//     next answers from its result.
//   - run does for one organisation what the job does for all.
//   - waits says whether there is work for which next has no instant, because it waits for a
//     reading.
//   - A job without a part says why in apart: what is due by the true clock (pushes, e-mails,
//     tokens, retention) does not become due by an advance.
//
// Work without an instant, queued by a request before the advance, is done before the first
// instant and after the last. In between, work becomes due only at the instants that next
// returns, so an advance can skip the time between them. If next forgets one, advancing by a
// year and advancing by minutes end with different records, and TestAdvance_Steps fails. If
// neither next nor waits knows of what a job would find, TestAdvance_LeavesNothing fails.
//
// Each instant is committed with the clock (org.clock_offset) before its work is done. If an
// advance is interrupted, the work of its last instant is done by the next advance or by the
// background jobs, which always go by the organisation's clock. Other requests see the clock
// move while the advance runs. On SQLite these commits are synced to the disk once, before the
// advance is answered or a push is sent. A power cut, but not a kill, may therefore undo the
// advance, clock and work alike, back to the last sync.
//
// Prices that the sandbox makes up are published for the whole advance before it begins. They
// become known at the hour at which each day's prices come out, so no plan uses them early.
// Pushes are due by the true clock. An advance waits for its organisation's endpoints, within
// their rates, at most PushWait at one instant. If they have not answered by then, it does not
// wait for them again, and the background job sends the rest.
package app
