// Package registry is the service of sites and assets: it registers and finds them, says what
// they are eligible for, and enrols them in propositions and out again.
//
// A site is known by its MPAN, else by its address; an asset by the vendor's own id for it.
// What a client sends again is merged into what is kept: given fields replace, missing ones
// stay.
package registry
