// Package app wires flexd together: it opens the store, makes the services, runs the background jobs and
// serves the transports. The program, the simulation and the tests all start this one.
//
// # Advancing a sandbox clock
//
// An organisation's sandbox clock is advanced from one instant at which something of this
// organisation is due to the next. At each instant its jobs do what is due, its endpoints are sent what
// that makes, and the clock is moved on. Nothing is done for anybody else: no other organisation's
// jobs are run, its endpoints are not waited for.
//
// addJobs is the one list of background jobs. Each is added with its part in an advance:
//
//   - next says when the job is due for the organisation next, after an instant. Asked for what
//     comes after the zero time, it names an instant that has passed if something is due already.
//     An advance asks for most of it by one statement (store.Tx.AskDue), and next answers by what that found.
//   - run does for one organisation what the job does for all.
//   - waits says whether there is work that next names no instant for, as what is waited for is a reading.
//   - Or the job has no part, and apart says why: what is due by the true clock (pushes, e-mails,
//     tokens, retention) no advance makes due.
//
// What can be due without an instant, because a request came before the advance, is asked for before the first
// instant and after the last. Nothing on the way makes anything due but by an instant that next
// names: that is why an advance can skip the time between. If next forgets one, advancing by a year and
// advancing by minutes end with different records, and TestAdvance_Steps fails. If neither next nor waits names what a
// job would find, TestAdvance_LeavesNothing does.
//
// Each instant is committed with the clock (org.clock_offset) before its work is done. An advance that is broken off
// therefore ends at an instant whose work is done by the next advance, or by the background jobs, which
// find what is due at the organisation's clock as ever. The clock that others read on the way
// is the progress of the advance. On SQLite these commits are synced to the disk once, before the advance is answered or a push
// is sent. A power cut, but not a kill, may therefore set the clock back, with all that was done since the last sync.
//
// Prices that the sandbox makes up are published for the whole advance before it begins; they are known
// by each day's own hour, so nobody sees one early. Pushes are due by the true clock. An advance waits for its
// own endpoints within their rates, PushWait at an instant; if they have not answered by then, the
// rest of the advance leaves them to the background job.
package app
