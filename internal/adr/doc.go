// Package adr is the service that keeps OpenADR 3.1 objects: programs, events, reports,
// subscriptions, VENs and their resources. It says who may read and write which of them, holds each
// document against the specification, and notifies subscribers. How a client asks for them is the
// transport's concern.
//
// A client is one of two. Business logic (BL) runs programs: it reads everything of its organisation
// and writes programs, events, VENs and resources. A virtual end node (VEN) answers them: it reads
// programs and events that are for everybody or for a target that is its own or its resources', and
// what it made itself; it writes reports and its own VEN and resources. Both have subscriptions. What
// a client may not read is not found, whosever it is.
package adr
