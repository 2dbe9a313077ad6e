// Package openadr is the OpenADR 3.1 transport: an organisation's virtual top node (VTN), for
// its dispatchers (business logic) and for sites' controllers (virtual end nodes). It has all
// of the specification's operations under Root. Package adr stores the objects and decides who
// may read them.
//
// # Who is served
//
// Organisations with the setting openadr=true, by clients that "flexd openadr client add"
// made. A client exchanges its id and secret at auth/token for a token that is valid for an
// hour (OAuth 2.0's client credentials grant, RFC 6749, section 4.4). Its role gives its
// scopes: if it asks for another one, the answer is invalid_scope; scopes that it does not ask
// for it has nevertheless. An organisation without the setting is unauthorized_client there,
// and forbidden everywhere else.
//
// # Steps of a request
//
//  1. The route is found. Paths and methods that do not exist are answered without a token.
//  2. The token is read: whose it is (access), whether that is a client of OpenADR, and
//     whether its organisation is served.
//  3. Admit counts the request against the rate of that organisation, or of the client's
//     address if the token was not accepted. Only then is a request without a valid token
//     refused.
//  4. The media type and the length of the body are checked (BodyMax, at auth/token TokenMax),
//     and the body is read within bodyTime.
//  5. adr carries it out in one transaction. The answer is encoded completely before its
//     status is sent, and the request is one line of the log.
//
// A request has no state beside its token, so any process can answer it. POST is not
// idempotent, as in the specification: a client that did not get the answer finds the object
// that it made by its name, and a second object of that name is a conflict (409).
//
// # Failures
//
// Errors are application/json with title, status and detail, as the specification has them; at
// auth/token OAuth's error code is added (error). Where the specification says nothing: 405
// for a method that a path does not have, 400 for what HTTP calls 413 and 415, 429 for too
// many requests, and 401 wherever a token is required. A database that does not answer is 500,
// as the specification has no 503. A failure without a kind (flex.Internal) and a panic are
// 500 too: they are logged, and their texts are not sent.
//
// # Notifications
//
// Only webhooks (package adr sends them). There is no MQTT notifier: its topics are not found.
// Callback receives what another party's VTN sends to this flexd as its VEN: it only causes a
// poll, and its body is not used.
package openadr
