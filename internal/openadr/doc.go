// Package openadr is the OpenADR 3.1 transport: the virtual top node (VTN) of an organisation, for its
// dispatchers (business logic) and for sites' own controllers (virtual end nodes). It has all of the
// specification's operations under Root. What is kept, and who may read it, is the concern of adr.
//
// Who is served: an organisation that has the setting openadr=true, by clients that flexd openadr
// client add made. A client exchanges its id and secret for a token of an hour at auth/token.
//
// Where the specification says nothing: 405 for a method that a path does not have, 413 and 415 as
// 400, 429 for too many requests, and 401 wherever a token is asked for. Errors are of the form
// application/json, as the specification has them. There is no MQTT notifier: its topics are not found.
package openadr
