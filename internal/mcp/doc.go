// Package mcp lets an agent (a program that a language model controls) use flexd by the Model
// Context Protocol, https://modelcontextprotocol.io.
//
// # What an agent may do
//
// Each tool is one operation of the interface and is called on the interface's own handler,
// with a token of one organisation. An agent therefore sees what the organisation's credential
// sees, within its roles, rate and limits, and no rule of flexd is repeated here. The schema
// of a tool's arguments is that of openapi.yaml: parameters by their names, and the request's
// body as "body".
//
// Tools that read, explain and preview answer at once. Tools that change something are offered
// only if the operator asked for them, and take two calls:
//
//  1. The first call, without "confirmation", changes nothing. Its answer has what would
//     happen (the operation's own dry run, or the current state) and a confirmation.
//  2. The second call has the same arguments and the confirmation. Only this call makes the
//     change.
//
// A confirmation is random, is for one tool with exactly these arguments, works once, and
// expires after ConfirmationLife. If the first answer was the current state, the second call
// is refused when that has changed meanwhile; of an instruction's report only the instruction
// is compared. At most MaxConfirmations are open at a time; the oldest is dropped first.
//
// # Over HTTP
//
// OverHTTP answers many agents by the streamable HTTP transport, without sessions: each
// request has a bearer token of the interface, which is looked up each time, and its calls are
// made with the same token, from the address of its sender. The token therefore decides which
// organisation or site an agent sees, and an agent whose token expires or is revoked has no
// access. Confirmations are separate for each token and address.
//
// # The kill switch and the log
//
// While all pushes are halted, or those of the agent's organisation, no tool changes anything:
// an agent must not bypass the people who halted them. Every call, also one that is refused,
// is written in the audit log before it is made, with its outcome after it. The log has only
// those arguments that the tool defines; of those that show who lives where (an MPAN, a
// postcode) it has only that they were given.
//
// # Failures
//
// What the interface refuses is an answer with isError, the problem as its text, so that the
// model can correct its call. A result of more than MaxResult bytes is refused with the advice
// to ask for less, as a list that was cut would look complete.
package mcp
