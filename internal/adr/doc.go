// Package adr is the service for OpenADR 3.1 objects: programs, events, reports,
// subscriptions, VENs and their resources. It decides who may read and write each object,
// checks each document against the specification, notifies subscribers, makes the events of
// bound programs into orders for the fleet, and polls other parties' servers. The HTTP side is
// package openadr.
//
// # Clients
//
// There are two kinds of client. Business logic (BL) runs programs: it reads everything of its
// organisation and writes programs, events, VENs and resources. A virtual end node (VEN)
// responds to them: it reads programs and events that have no target, or a target of its own
// or of its resources, and the objects that it made itself; it writes reports and its own VEN
// and resources. Both may have subscriptions. An object that a client may not read is answered
// as not found.
//
// # Orders
//
// A program may be bound to a part of the organisation's own fleet (flex.ADRBinding) in one of
// three ways: as instructions, as limits of what a constraint group draws, or as limits in
// both directions. Each payload of its events' intervals is an order: a change against the
// plan in W, or a limit, in whole minutes. Whenever an event, a program or a binding is
// written, the orders that should exist are compared with those that are stored, in the same
// transaction:
//
//	waiting ─► sent        control made an instruction of it (control.SendOrders); short if that brought too little
//	   │  ├──► limited     control made a limit of it; its problem says if it is exceeded
//	   │  └──► refused     it cannot be: no end, a unit that is no power, a level without its change, too late
//	   ├─────► outranked   an event of higher priority, or of the same and newer, has all of its time
//	   └─────► withdrawn   nothing asks for it any more; what was sent is stopped
//
// Writing the same document again changes nothing. Where events overlap, the one of the
// highest priority counts (0 is the highest), and the others' orders have what remains of
// their time. A randomised start is derived from a hash of the event's id and the interval, so
// that it is the same each time; consecutive intervals are moved together. A preview makes the
// same change in a transaction that is rolled back.
//
// ReportOrders writes flexd's own report of each event: whenever the state of one of its
// orders changes, and 1, 6 and 26 hours after an order's end, when more meters have been read.
// An order is short if it brought less than 95 % of what was asked.
//
// # Notices
//
// A notice to a subscriber is queued in the transaction that writes the object, as a job of
// the kind openadr (package store describes the queue). SendNotices makes an attempt under a
// lease of two minutes. After a failure it tries again after 10 s, 20 s, 40 s and so on, at
// most 15 min apart and 12 times in all; then the notice is given up.
//
//   - A notice may arrive twice and in any order: one that is tried again arrives after later
//     ones, even of the same object. The object's modificationDateTime shows which is newer.
//   - After an address has not answered, it is not called for 10 s. Its other notices wait, as
//     if they had been tried.
//   - Different addresses are called at the same time, each with one notice after the other. A
//     run begins calls to an address for 15 s and waits for the last answer; the remaining
//     notices wait for a later run.
//   - A subscription ends with its program. Notices that were queued before, such as that of
//     the program's deletion, are still sent.
//
// # Other parties' servers
//
// The organisation may be a VEN of another server (VTN). PollUpstreams claims the servers that
// are due, by moving their due time on, and polls each for its program's events, for at most a
// minute or the time between two polls. The events are mirrored in one transaction under a
// program of the organisation's own, which only that server changes; if it is bound, its
// events become orders like any other. Then the VEN registers itself, subscribes if the server
// can reach it, and sends the reports that are due.
//
//   - If an event cannot be read, its former version stays, and the error is stored with the
//     server.
//   - An answer that arrives after the server's next poll began, or after the server was
//     removed, is dropped.
//   - A call from the server (Called) only starts a poll at once. Its content is not used, as
//     it may be late, repeated or lost.
//   - A report whose id at the server is not known is searched for there before it is posted,
//     by its event, client and name, as the answer to a former post may have been lost. A
//     server that does not let its VENs read reports may then have it twice.
//   - If a server has been silent for longer than its limit, that is an exception (package
//     operations). If its program limits a group, the group's link counts as silent too, and
//     control's fallback limit applies.
package adr
