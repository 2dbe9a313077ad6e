// Package flex holds the nouns of the trade and the laws that bind them: what a
// site, an asset, an intent, a session or a settlement period is, the units that
// their quantities are counted in, and the kinds of failure. It knows no clock, no
// wire and no store.
package flex
