// Package console is the operators' web interface: pages that show what flexd does and why, and let
// an operator act. The server renders complete pages that work without scripts; scripts add the
// plots and keep numbers current. Everything a page needs is embedded, and the content security policy
// forbids other hosts.
//
// It draws what the services' views say, across organisations, each at its own clock, and acts
// through the services, every act in the audit log. It has no way to the database. What a plot shows can be had as JSON, what a
// table shows as CSV or JSON, under the same login.
//
// # What every request goes through
//
// The list surface has every route, with what it asks for:
//
//	guarded      headers; a form that another site's page sends is refused
//	session      who the operator is, looked up each time (access.IdentifyOperator)
//	needs        the permission that the operator's role must have; if none is named, See of a page, Administer of an act
//	whole        what concerns all organisations is not for an operator of some of them
//	two-step     a code must be set up first, where the server asks for one
//	confirm      acts on money and access ask again who it is (access.SecondFactorOf)
//	handler      one service's view, or an act
//	sees         that a page showed a person is written in the audit log
//
// # A page
//
//	handler ──► one service's view ──► view: status, template, its data, its table ──► write
//
// A handler reads the address and the form, asks a service, and turns the answer into words and numbers. write renders the template, or the
// table as CSV or JSON by the address's ending or the Accept header. A table of many pages is written part after part, so that no more
// than one is in memory. Live numbers come by server-sent events: each stream looks every two seconds and sends what changed, at most 64
// streams at once and each for an hour, after which the browser asks again. A stream ends with its session, and when its operator becomes
// one of other organisations.
//
// An act is a form, answered with a redirect to the page that shows what it did. Acts on many assets are shown first
// (package selection). What cannot be undone asks for a word to be typed.
//
// # Failures
//
// A failure is a page, or JSON for a program; its status is by the one table of package web. What was not written to be shown is logged
// and shown as "Internal error". A panic is the same. A table that breaks off breaks the connection, so that nobody takes a part for the
// whole.
package console
