// Package registry is the service of sites and assets: it registers and finds them, says what
// they are eligible for, records consents, and enrols sites in propositions and out again.
//
// # Identity
//
// A site is known by its MPAN, else by its address; an asset by the vendor's own id for it.
// What a client sends again is merged into what is kept: given fields replace, missing ones
// stay. Onboard does all of a request or nothing, and says of each record whether it is new, what changed and what was passed over. All
// faults of a request are named at once.
//
// # Consents and enrolment
//
//	            Enrol, if eligible and consented
//	(not) ──────────────────────────────────► enrolled ── Unenrol ──► withdrawn
//	                                              ▲                        │
//	                                              └── Enrol with override ─┘
//
// Consents are kept with their history: the use of the boundary meter's readings, the dispatch methods, and the discharge of cars. One that is dated
// in the future (beyond five minutes of clock error) or before the last withdrawal is refused. A withdrawn method is withdrawn from the
// proposition of its name too, and its pauses that have not begun are dropped. What was read while a consent held may still be used.
//
// A proposition is open to a site whose meter is settled half-hourly, or through an asset whose model is qualified under CoP11 and whose installation date
// is known. Sites that are not domestic have no way in. What the operator said of a model goes before that. A site
// without a metering point, where the organisation may have those, can be planned and is never settled.
//
// # What a change causes
//
// In the same transaction: an asset that is deleted ends its open session and frees its charger; a changed power, capacity or consent marks what
// was planned or settled with it as due. An asset's power has a history by day, since settlement asks what it was then: a day of which something was settled
// cannot change.
//
// # Metering points and parties
//
// The directory is asked for a metering point before the transaction, and what it says is kept: if it fails, so does the request, as a guess would
// enrol or refuse wrongly. MovePoint decides that a point changes its party at an instant; the job MovePoints withdraws the former party's site
// then.
//
// # Manufacturers' clouds
//
// A user links a cloud by OAuth 2.0 with PKCE. The code that the browser brings back, and each token that ends within ten minutes, is a job (package store)
// under a lease of a minute: exchanged at least once. A cloud that fails is asked again, for a code after a minute as long as the link lives, for a token after five; one that refuses
// is not asked again. Secrets are sealed (package keyring).
package registry
