// Package mcp lets an agent (a program that a language model steers) use flexd by the Model
// Context Protocol, https://modelcontextprotocol.io.
//
// # What an agent may do
//
// Each tool is one operation of the interface and is called on the interface's own handler, with
// a token of one organisation. So an agent sees what the organisation's credential sees, within
// its roles, rate and limits, and no rule of flexd exists a second time here. The schema of a
// tool's arguments is the one of openapi.yaml: parameters by their names, and the request's body
// as "body".
//
// Tools that read, explain and preview answer at once. Tools that change something are offered
// only if the operator asked for them, and take two calls:
//
//  1. The first call, without "confirmation", changes nothing. It answers what would happen (the
//     operation's own dry run, or the current state) and a confirmation.
//  2. The second call has the same arguments and the confirmation. Only then is it done.
//
// A confirmation is random, is for one tool with exactly these arguments, works once, and ends
// after ConfirmationLife. Where the first answer is the current state, the second call is refused
// if that has changed meanwhile; of an instruction's report the instruction alone counts. At most
// MaxConfirmations wait at a time; the oldest goes first.
//
// # Over HTTP
//
// OverHTTP answers many agents by the streamable HTTP transport, without sessions: each request has
// a bearer token of the interface, which is looked up each time, and its calls are made with that
// very token, from the address of its sender. So the token says which organisation or site an agent
// sees, and where it ends or is revoked, the agent does. Confirmations are kept for each token and
// address by itself.
//
// # The kill switch and the log
//
// While all pushes are halted, or those of the agent's organisation, no tool changes anything: an agent does not work around
// the people who halted. Every call, also one that is refused, is written in the audit log before it is made, with
// its outcome after it. Of the arguments the log has those that the tool has, and of what says who
// lives where (an MPAN, a postcode) only that it was given.
//
// # Failures
//
// What the interface refuses is an answer with isError, the problem as its text, so that the model
// can mend its call. A result of more than MaxResult bytes is refused with the advice to ask for
// less: a list that was cut would look whole.
package mcp
