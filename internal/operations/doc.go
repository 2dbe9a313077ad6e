// Package operations is the service that shows operators the state of the fleet and what is
// wrong, and sends alerts.
//
// # The fleet
//
// A snapshot of the fleet is read whole, its parts at the same time, and cached: its counts,
// what it will draw half-hour by half-hour (Outlook), and which assets will fall short. A
// snapshot is used for two seconds, or for ten times as long as it took to make. An older one,
// up to 30 s, is shown while the next is made, by one request at a time.
//
// # Exceptions
//
// An exception is something that somebody should look at. There is one list of them: the
// console, GET /operations/exceptions, flexd doctor and the metrics all show it, so that none
// of them reports that all is well while another shows a problem. Kinds lists what can be
// wrong. If a finder fails, only the kinds that it finds are missing: the list names them as
// unread, and does not report that all is well. A database that cannot be read is itself an
// exception, and then the list is incomplete.
//
// # Alerts
//
//	          as many, and for as long, as a rule says
//	wrong ─────────────────────────────────────────► firing ──► ended, once it is gone for a minute
//	                                                  │  ▲
//	                                                  └──┘ sent again after a snooze
//
// WatchAlerts compares the exceptions with the rules every 15 s. While the list is incomplete,
// no alert ends, and alerts for the exceptions that were found are sent. No heartbeat is sent
// while some kind could not be looked for.
//
// Of several processes that watch, only one raises an alert's number, and it queues the
// alert's messages in the same transaction, so that each is queued once. A message is a job
// (package store) under a lease of two minutes. It is sent at least once, by webhook,
// PagerDuty, Alertmanager or e-mail, and tried 12 times over about 80 minutes. If the database
// has failed for a minute, each process sends an alert of that from memory.
package operations
