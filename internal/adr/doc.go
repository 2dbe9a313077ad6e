// Package adr is the service that keeps OpenADR 3.1 objects: programs, events, reports,
// subscriptions, VENs and their resources. It says who may read and write which of them, holds each
// document against the specification, notifies subscribers, has bound programs steer the fleet, and asks
// other parties' servers. How a client asks is the transport's concern (package openadr).
//
// # Clients
//
// A client is one of two. Business logic (BL) runs programs: it reads everything of its organisation
// and writes programs, events, VENs and resources. A virtual end node (VEN) answers them: it reads
// programs and events that are for everybody or for a target that is its own or its resources', and
// what it made itself; it writes reports and its own VEN and resources. Both have subscriptions. What
// a client may not read is not found, whosever it is.
//
// # Orders
//
// A program may be bound to a scope of the organisation's own fleet (flex.ADRBinding): as instructions, as limits of
// what a constraint group draws, or as limits in both directions. Each payload of its events' intervals is an
// order: a change against the plan in W, or a limit, in whole minutes. Whenever an event, a program or a binding
// is written, the orders that are wanted are compared with those that are kept, in the same transaction:
//
//	waiting ─► sent        control made an instruction of it (control.SendOrders); short if that brought too little
//	   │  ├──► limited     control made a limit of it; its problem says if it is exceeded
//	   │  └──► refused     it cannot be: no end, a unit that is no power, a level without its change, too late
//	   ├─────► outranked   an event of higher priority, or of the same and newer, has all of its time
//	   └─────► withdrawn   nothing asks for it any more; what was sent is stopped
//
// The same document twice changes nothing. At each instant the event of the highest priority counts (0 is the highest); of
// another's orders what is left of their time remains. A start at random is drawn by a hash of the event's id and the
// interval, so that it is the same each time; intervals that follow one another are moved together. A preview makes the same change in a transaction that is rolled back.
//
// ReportOrders writes flexd's own report of each event, again whenever its orders' state changes, and 1, 6 and 26 hours
// after an order's end, when more meters were read. An order is short if it brought less than 95 % of what was asked.
//
// # Notices
//
// What subscribers are to be notified of is queued in the transaction that writes the object, as a job of the kind openadr
// (package store has the queue's protocol). SendNotices makes an attempt under a lease of two minutes. One that fails is
// tried again after 10 s, 20 s, 40 s and so on, up to 15 min apart and 12 times in all; after that it is given up. A notice may
// arrive twice, and in any order: one that is tried again comes after later ones, of the same object too. Its modificationDateTime tells which is the newer.
// An address that does not answer is not called for 10 s: what else was to be sent to it waits, as if it had been tried.
// Addresses are called at the same time, each of them one notice after the other: a run has an address called for 15 s, and waits for the
// answer to the last call; what that leaves over waits for a later run. A subscription ends with its program, but what was to be sent
// for it before, as that the program is deleted, is sent.
//
// # Other parties' servers
//
// The organisation may be a VEN of another server (VTN). AskUpstreams claims the servers that are due by moving their
// due time on, and asks each for its program's events, at most for a minute or the time between two polls. The
// events are mirrored in one transaction under a program of the organisation's own, which only that server
// changes; bound, it steers the fleet as any other. Then the VEN registers itself, subscribes if the server can reach
// it, and sends the reports that became due.
//
//   - An event that cannot be read stays as it was before, and the error is kept with the server.
//   - An answer that comes after the server's next poll began, or after it was removed, is not kept.
//   - A call of the server (Called) only has it polled at once: what the call says is not used, as it may be late,
//     doubled or lost.
//   - A report without a known place there is looked for before it is posted, by its event, client and name, as the answer to a former post
//     may have been lost. A server that does not let its VENs read reports may have two of it then.
//   - Silence longer than the server's bound is an exception (package operations). Where its program limits a group, the
//     group's link goes silent too, and control's fallback limit binds.
package adr
