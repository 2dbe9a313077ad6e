// Package registry is the service of sites and assets. It registers and finds them, says for
// which propositions they are eligible, records consents, and enrols sites in propositions and
// withdraws them.
//
// # Identity
//
// A site is identified by its MPAN, otherwise by its address; an asset by the vendor's own id
// for it. A repeated registration is merged with the stored record: given fields replace,
// missing ones stay. Onboard carries out a whole request or nothing, and says of each record
// whether it is new, what changed and what was ignored. All errors of a request are reported
// at once.
//
// # Consents and enrolment
//
//	            Enrol, if eligible and consented
//	(not) ──────────────────────────────────► enrolled ── Unenrol ──► withdrawn
//	                                              ▲                        │
//	                                              └── Enrol with override ─┘
//
// Consents are stored with their history: to the use of the boundary meter's readings, to the
// dispatch methods, and to the discharge of cars. A consent that is dated in the future
// (beyond five minutes of clock error) or before the last withdrawal is refused. A withdrawn
// method is also withdrawn from the proposition of its name, and its pauses that have not
// begun are dropped. Readings that were made while a consent was in force may still be used.
//
// A proposition is open to a site whose meter is settled half-hourly, or through an asset
// whose model is qualified under CoP11 and whose installation date is known. Sites that are
// not domestic cannot be enrolled. An operator's decision about a model overrides what was
// known of it. A site without a metering point, where the organisation may have those, can be
// planned and is never settled.
//
// # What a change causes
//
// In the same transaction: deleting an asset ends its open session and frees its charger; a
// changed power, capacity or consent marks the plans and settlements that used it as due. An
// asset's power has a history by day, since settlement uses the power of its own day. The
// power of a day of which something was settled cannot change.
//
// # Metering points and parties
//
// The directory is asked for a metering point before the transaction, and its answer is
// stored. If it fails, the request fails too, as a guess could enrol or refuse a site wrongly.
// MovePoint decides that a point changes its party at an instant; at that instant the job
// MovePoints withdraws the former party's site.
//
// # Manufacturers' clouds
//
// A user links a cloud by OAuth 2.0 with PKCE. Two things are queued as jobs (package store)
// under a lease of a minute, and each is done at least once: exchanging the code that the
// browser brings back, and refreshing a token that expires within ten minutes. If a cloud
// fails, a code is tried again after a minute, until the link expires, and a token after five
// minutes. If a cloud refuses, it is not asked again. Secrets are sealed (package keyring).
package registry
