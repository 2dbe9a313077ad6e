// Package access is the service that establishes who is asking and what they may do. It has
// organisations' credentials, the tokens that credentials are exchanged for, operators and
// their sessions, roles, idempotency keys, and the limits on guessing passwords.
//
// # Secrets
//
// A token is 256 random bits. The database has only its SHA-256, so that nobody but the client
// that received it can use it. A token is valid for an hour ([TokenLife]). Other secrets that
// flexd made are stored in the same way; secrets that a person chose are stored by Argon2id
// (19 MiB, two passes). An unknown name, a wrong secret and a revoked credential give the same
// answer after the same work.
//
// # Limits on guessing
//
//   - Attempts from one address for one name: 10 at once, then one a second. From one address
//     for all names: 100 at once, then 10 a second. Nobody is locked out: a wait is at most
//     one interval. An attempt that succeeds is not counted.
//   - Secrets that a person chose are checked one at a time, as each check is expensive. 32
//     attempts wait, 8 of them from one address; further ones are refused unchecked.
//     Organisations and operators have separate queues. A secret that was right within the
//     last hour (an operator's: within the last 12 hours) is checked without waiting.
//   - Each process counts by itself, in memory.
//
// # Tokens
//
// A token belongs to a credential, with some of its roles, or to one site (component token,
// household token); see Principal. It never outlives its credential. Each process caches the
// result of a look-up for five seconds. A revocation therefore takes effect at once in the
// process that made it, and within five seconds in others. If a credential or its organisation
// is limited to certain networks or client certificates, that is checked at each request, not
// only at the login. RollCredential leaves the former password valid for a grace time, so that
// clients can change over one by one.
//
// # Operators
//
//	password ─► code, if two-step is on ─► session
//	passkey ─────────────────────────────► session   the device is two factors by itself
//	identity provider ───────────────────► session   its groups give the role, at each sign-in again
//
// A session is looked up in the database at each request, so ending it takes effect in all
// processes at once. One-time codes (RFC 6238), recovery codes, passkeys' challenges and an
// identity provider's answers are each accepted once. For acts that concern money or access,
// the operator must confirm who they are again, once [ConfirmedFor] has passed.
//
// Act writes an audit entry before the act, and its outcome afterwards. If the entry cannot be
// written, the act is not done. Checkpoint signs the newest link of the audit log's chain with
// a key that is not in the database.
//
// # Idempotency keys
//
// ClaimKey claims a key for a request, which is identified by its hash. Each transaction that
// the request's handler commits is counted on the key in the same commit. A repeat of the
// request gets the stored answer. Another request with the same key is a Conflict, and so is a
// repeat while the first request is still being answered. The answer is stored in one of two
// ways.
//
//   - With the data. Before it writes, the handler says how it will answer (AnswerWith); the
//     service gives its transaction what that has made (store.Tx.SetMadeRecord); and the answer is
//     stored in the same commit. If the process dies afterwards, a repeat gets the same bytes.
//     Requests that make sites, assets, enrolments, instructions, offers and products are
//     answered so, and those that end an enrolment or offboard a site.
//   - After the handler. If the process dies between commit and answer, a repeat runs the
//     request again under the key, and rolls back as many transactions as the first run had
//     committed. So nothing is done twice, and the handler finds its answer in the stored
//     data. This is right where the answer has no new id: it is null, a status, or a
//     description of what the path names. A DELETE of what is already gone is answered as
//     done.
//
// Exceptions: batches of readings store no answer, since the same readings again change
// nothing. A token request makes a new token at each repeat, and its answer is not stored. A
// rotated secret is shown once. The test of an endpoint ends after its commit, with the
// receiver's answer; if the process died, a repeat may name a delivery that does not exist.
//
// Entries of the audit log and meters that were looked up are not counted on the key
// (store.Uncounted). Each run of a request is an act of its own, and a known meter is not
// written again. A run that was killed leaves an act without an outcome.
//
// A key is valid for a day; the key of a request that did not finish, for two minutes.
package access
