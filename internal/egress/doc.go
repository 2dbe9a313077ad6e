// Package egress sends every HTTP request that leaves flexd. It connects only to the public
// internet: the address is checked when it dials, after the name is resolved, so that neither
// a redirect nor a changed DNS answer can avoid the check. It follows no redirects, uses no
// proxy, decompresses nothing, and limits the size and time of every answer.
//
// # What may be reached
//
// Public addresses, by IANA's registries of special-purpose addresses; of IPv6 only 2000::/3.
// An operator may allow private addresses, or hosts by their names. Link-local addresses, and
// those at which clouds give out a machine's credentials, are always refused.
//
// # Limits
//
// 5 s to connect, 5 s for TLS, 15 s for the whole exchange ([AttemptTime]); 64 KiB of an
// answer's body ([AnswerMax]), up to 32 MiB if the caller asks for it, and 16 KiB of its
// header. A body that is cut off is returned with its status and an error. Every failure is an
// [Error], with a text that helps an operator to act.
//
// A request may arrive twice, if a reused connection turns out to be closed: its receiver must
// recognise it. Otherwise requests are not repeated here; that is up to the sender.
//
// Pushes are signed by Standard Webhooks 1.0 (sign.go). E-mails are sent by SMTP to the
// operator's own relay (mail.go), whose address is not checked.
package egress
