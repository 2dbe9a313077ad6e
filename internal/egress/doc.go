// Package egress is the only way out of flexd by HTTP. It lets a request leave for the
// public internet alone: the check is made when it dials, after the name is resolved, so that
// neither a redirect nor a changed DNS answer passes it. It follows no redirect, uses no
// proxy, inflates nothing, and every answer is bounded in size and time.
//
// # What may be reached
//
// Public addresses by the registries of IANA for special purposes; of IPv6 2000::/3 alone. An operator may open private addresses, or hosts by their
// names. Link-local addresses and those at which clouds hand out a machine's credentials stay shut whatever is opened.
//
// # Bounds
//
// 5 s to connect, 5 s for TLS, 15 s for the whole exchange ([AttemptTime]); 64 KiB of an answer ([AnswerMax]), up to 32 MiB if a request asks for it, and 16 KiB of
// its header. A body that is cut off comes with its status and an error. Every failure is an [Error], in words that an operator can act on.
//
// A request may arrive twice, when a connection that was kept turns out to be closed: who receives it must know it again. Requests are not repeated
// otherwise; that is their sender's concern.
//
// Signatures of pushes are those of Standard Webhooks 1.0 (sign.go). E-mails leave by SMTP to the operator's own relay alone
// (mail.go), which the guard does not look at.
package egress
