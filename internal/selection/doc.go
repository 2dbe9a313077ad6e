// Package selection does one thing to one asset, or to many of an operator's choosing: what would come of it
// is shown first, each asset is for itself, and one that is refused stops no other. What an action does, and
// when it cannot be, is said by the service that owns it: control, delivery or registry.
package selection
