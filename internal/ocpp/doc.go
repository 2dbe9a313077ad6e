// Package ocpp writes the steps of a schedule as an OCPP 1.6 charging profile, the
// message that flexd pushes, and reads such a profile back as a charger would.
//
// A profile always ends: after its duration the charger is free again, so a charger
// that never hears from flexd again is never left unable to charge.
package ocpp
