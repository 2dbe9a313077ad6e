// Package selection does one action to one asset, or to many of an operator's choosing: what would come of it
// is shown first, each asset is for itself, and one that is refused stops no other. What an action does, and
// when it cannot be, is said by the service that owns it: control, delivery or registry.
//
//	Preview ──► a line for each asset, nothing changed
//	Do      ──► the same lines, done; a final action needs the phrase of its preview
//
// # Guarantees
//
//   - A preview is the action itself in a transaction that is rolled back, so its lines are those that Do would give at that instant. It holds nothing:
//     what changes between the two shows in Do's lines.
//   - Each asset has its own write transaction. A preview looks at each as if it were alone: it does not say what the first ten do to the eleventh, as under caps.
//   - Assets are taken in the order in which they were selected, each once, at most Max.
//   - An action that cannot be undone (Kind.Final) is previewed again by Do, and done only if what was typed names the number of assets for which it is possible now.
//   - An asset of an organisation that the context does not reach is not found, as one that does not exist is.
//
// # Failures
//
// What the owner of the action refuses (any kind of flex.Error but Internal and Unavailable) is the line's Fault, and the next asset is tried. Any other
// error, as of a database that does not answer, ends the run: the result then has the lines so far, which are done and stay done. After a crash the same
// holds, without a result. Do is therefore safe to repeat only as far as its action is: to plan again or to exclude twice is harmless, to resend sends twice.
// A request's idempotency key does not count the transactions: which assets are refused differs from run to run, and with a count the repeat would leave out
// others than the first run has done.
//
// The caller writes the audit entry (Action.Act) before the action and its result (Result.String) after it; access.Act does both.
package selection
