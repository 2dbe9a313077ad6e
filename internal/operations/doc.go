// Package operations tells operators how the fleet is and what is wrong, and sends alerts when something is.
//
// # The fleet
//
// The fleet is read whole, side by side, and kept for some seconds: its counts, what it will
// draw half-hour by half-hour (Outlook), and which assets will fall short. A snapshot is at most two seconds old, or ten times as old as it took
// to make; an older one, up to 30 s, is shown while the next is made. One request at a time makes it.
//
// # Exceptions
//
// An exception is something that somebody should look at. There is one list of them: the console, GET
// /operations/exceptions, flexd doctor and the metrics show the same, so that none of them says
// that all is well while another knows better. Kinds names what can be wrong. A finder that fails hides only the
// kinds that it finds: they are named as unread, and nobody says that all is well. A database that cannot be read is an exception
// too, and then the list is not whole.
//
// # Alerts
//
//	          as many, and for as long, as a rule says
//	wrong ─────────────────────────────────────────► firing ──► ended, once it is gone for a minute
//	                                                  │  ▲
//	                                                  └──┘ sent again after a snooze
//
// WatchAlerts compares the exceptions with the rules every 15 s. If the list is not complete, no alert ends, and what was found is
// sent; no heartbeat is sent if a kind could not be looked for. The one process that raises an alert's number queues its messages, in
// the same transaction: of several processes that watch, one sends. A message is a job (package
// store) under a lease of two minutes, sent at least once and tried 12 times over about 80 minutes, by webhook, PagerDuty, Alertmanager
// or e-mail. When the database has failed for a minute, each process sends an alert of that from memory.
package operations
