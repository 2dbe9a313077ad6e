// Package selection carries out one action on one asset, or on many that an operator selected.
// The result is previewed first, each asset is handled separately, and one that is refused
// stops no other. The service that owns the action (control, delivery or registry) decides
// what it does and when it is refused.
//
//	Preview ──► a line for each asset, nothing changed
//	Do      ──► the same lines, done; a final action needs the phrase of its preview
//
// # Guarantees
//
//   - A preview is the action itself in a transaction that is rolled back, so its lines are
//     those that Do would give at that instant. It locks nothing afterwards: what changes
//     between the two shows in Do's lines.
//   - Each asset has its own write transaction. A preview looks at each asset separately: it
//     does not show how the first ten would affect the eleventh, as they may under caps.
//   - Assets are taken in the order in which they were selected, each once, at most Max.
//   - Do previews an action that cannot be undone (Kind.Final) again, and carries it out only
//     if the typed phrase has the number of assets for which it is possible now.
//   - An asset of an organisation outside of the context's is not found, like one that does
//     not exist.
//
// # Failures
//
// If the action's owner refuses (any kind of flex.Error but Internal and Unavailable), the
// reason is the line's Fault, and the next asset is tried. Any other error, such as of a
// database that does not answer, ends the run. The result then has the lines so far; those
// actions were done and are not undone. After a crash the same holds, but there is no result.
//
// Do is therefore as safe to repeat as its action: planning again or excluding twice is
// harmless, resending sends twice. A request's idempotency key does not count these
// transactions: which assets are refused differs from run to run, so with a count the repeat
// could skip assets that the first run did not do.
//
// The caller writes the audit entry (Action.Act) before the action and its result
// (Result.String) after it; access.Act does both.
package selection
