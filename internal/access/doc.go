// Package access is the service that says who is asking: organisations' credentials, the
// tokens that they are exchanged for, operators and their sessions, the roles these carry, idempotency keys, and
// the brake on guessing.
//
// # Secrets
//
// Tokens are 256 random bits and kept as their SHA-256; only the one who was given a token
// has it. After an hour ([TokenLife]) it is worth nothing. Secrets that flexd made are kept in the same way, those that a person chose by
// Argon2id (19 MiB, two passes). An unknown name, a wrong secret and a revoked credential are the same failure
// after the same work.
//
// # Guessing
//
//   - Attempts from one address for one name: 10 at once, then one a second. From one address for any name: 100 at
//     once, then 10 a second. Nobody is locked out: a wait is at most one interval. An attempt that succeeds is
//     not counted.
//   - One guess at a chosen secret is checked at a time; 32 wait, 8 of one address, and the next is refused without being
//     checked. Organisations and operators have queues of their own. A secret that was right within the last hour,
//     an operator's within the last 12, does not wait.
//   - These counts are in memory, for each process by itself.
//
// # Tokens
//
// A token speaks for a credential (Principal) with some of its roles, or for one site (component token, household token). It never outlives
// its credential. A token that was looked up is believed for five seconds, so a revocation is in force in this
// process at once and in others within that time. Where the credential or its organisation is limited to networks or client
// certificates, each request is checked, not only the login. RollCredential lets the former password live on for a grace
// time, so that machines can change over one after the other.
//
// # Operators
//
//	password ─► code, if two-step is on ─► session
//	passkey ─────────────────────────────► session   the device is two factors by itself
//	identity provider ───────────────────► session   its groups give the role, at each sign-in again
//
// A session is looked up in the database at each request: one that was ended is over everywhere at once. Codes (RFC 6238) and
// recovery codes, passkeys' challenges and answers of an identity provider are each taken once. Acts on money and
// on access ask who the operator is again after [ConfirmedFor].
//
// Act writes an audit entry before the act and its outcome afterwards: if the entry cannot be written, the act is not
// done. Checkpoint signs the newest link of the audit log's chain with a key that the database does not hold.
//
// # Idempotency keys
//
// ClaimKey claims a key for a request, named by its hash. What the request's handler commits counts on the key in the same
// transaction. The same request again gets the kept answer; another request under the same key is a Conflict, and so is one
// while the first is being answered. The answer is kept in one of two ways.
//
//   - With the data. The handler says before it writes how it will answer (AnswerWith), the service gives its transaction what
//     that has made (store.Tx.Made), and the answer is kept in the same commit. If the process dies after it, a repeat has the same bytes.
//     So it is with requests that make sites, assets, enrolments, instructions, offers and products, and with those
//     that end an enrolment or offboard a site.
//   - After the handler. If the process dies between commit and answer, the request is run again under the key, and the transactions
//     that the first run committed are rolled back: nothing is done twice, and the handler finds its answer in what is there. That is
//     right where the answer makes no id: it is null or a status, or describes what the path names. A DELETE of what is gone by then
//     is answered as done.
//
// Beside them: batches of readings keep no answer, since the same readings again change nothing. A token is made again by each
// repeat, and its answer is not kept. A rotated secret is shown once. The test of an endpoint ends after its commit, with the
// receiver's answer; a repeat after the process died may name a delivery that there is not.
//
// Neither entries of the audit log nor meters that were looked up count on the key (store.Uncounted): each run of a request is an act
// of its own, and a meter that is known is not written again. A run that was killed leaves its act without an outcome.
//
// A key lives for a day, and one whose request came to no end for two minutes.
package access
