// Package market is the service of prices: it takes them in from files and from the markets'
// own services, keeps each publication as a version, and answers what the curve is at an
// instant. A price that is missing stays missing; one that cannot be true is kept out, and
// the last good one stands.
package market
