// Package console is the operators' web interface: its pages show what flexd does and why, and
// operators act on them. The server renders complete pages that work without scripts; scripts
// add plots and update numbers. Everything that a page needs is embedded, and the content
// security policy forbids other hosts.
//
// The console renders the services' views, across organisations, each at its own clock, and
// acts only through the services, with every act in the audit log. It has no access to the
// database. The data of a plot is also available as JSON, and of a table as CSV or JSON, with
// the same login.
//
// # Steps of a request
//
// The list surface has every route, with its requirements:
//
//	guarded      headers; a form that another site's page sends is refused
//	session      who the operator is, looked up each time (access.IdentifyOperator)
//	needs        the permission that the operator's role must have; if none is named, See for a page, Administer for an act
//	whole        what concerns all organisations is refused to an operator of only some of them
//	two-step     a code must be set up first, if the server requires one
//	confirm      acts on money and access ask the operator to identify again (access.SecondFactorOf)
//	handler      one service's view, or an act
//	sees         that a page showed a person's data is written in the audit log
//
// # A page
//
//	handler ──► one service's view ──► view: status, template, its data, its table ──► write
//
// A handler reads the address and the form, asks a service, and turns the answer into words
// and numbers. write renders the template, or the table as CSV or JSON, as the address's
// ending or the Accept header asks for. A long table is written in parts, with only one part
// in memory at a time.
//
// Live numbers come by server-sent events. Each stream reads the data every two seconds and
// sends what changed. There are at most 64 streams at once; each ends after an hour, and the
// browser opens it again. A stream also ends with its session, and when the organisations that
// its operator may see change.
//
// An act is a form; the answer redirects to a page that shows the result. Acts on many assets
// are previewed first (package selection). An act that cannot be undone requires a word to be
// typed.
//
// # Failures
//
// A failure is shown as a page, or as JSON to a program, with the status from the table of
// package web. A failure whose text is not meant for users is logged and shown as "Internal
// error"; so is a panic. If a table cannot be completed, the connection is broken, so that
// nobody takes a part for the whole.
package console
