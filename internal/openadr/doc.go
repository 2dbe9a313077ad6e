// Package openadr is the OpenADR 3.1 transport: the virtual top node (VTN) of an organisation, for its
// dispatchers (business logic) and for sites' own controllers (virtual end nodes). It has all of the
// specification's operations under Root. What is kept, and who may read it, is the concern of adr.
//
// # Who is served
//
// An organisation that has the setting openadr=true, by clients that flexd openadr
// client add made. A client exchanges its id and secret for a token of an hour at auth/token (OAuth 2.0's client credentials grant, RFC 6749, section 4.4). Its scopes follow
// from its role: one that it asks for and cannot have is invalid_scope; one that it does not name it has all the same. An organisation without the setting is
// unauthorized_client there, and forbidden everywhere else.
//
// # What becomes of a request
//
//  1. The route is found. Paths and methods that there are not are answered without a token.
//  2. The token is read: who it speaks for (access), whether that is a client of OpenADR, and whether its organisation is served.
//  3. Admit counts the request against the rate of that organisation, or of the client's address if the token was not accepted; only then is it refused for its token.
//  4. The media type and the length of the body are checked (BodyMax, at auth/token TokenMax), and the body is read within bodyTime.
//  5. adr does it, in one transaction. The answer is encoded whole before its status is sent, and the request is one line of the log.
//
// A request has no state beside its token, so any process answers it. POST is not idempotent by itself, as in the specification: a client that did not get the answer finds what it made by its name, and
// a second of that name is a conflict (409).
//
// # Failures
//
// Errors are of the form
// application/json with title, status and detail, as the specification has them; at auth/token OAuth's word is added (error). Where the specification says nothing: 405 for a method that a path does not have, 413 and 415 as
// 400, 429 for too many requests, and 401 wherever a token is asked for. A database that does not answer is 500, as the specification knows no 503. What has no kind of failure (flex.Internal) is 500 too: it is
// logged, and its text is not sent. A panic is the same.
//
// # Notifications
//
// Webhooks alone (package adr sends them). There is no MQTT notifier: its topics are not found. Callback takes what another party's VTN sends to this flexd as its VEN: it is a hint to poll, and its body is not used.
package openadr
