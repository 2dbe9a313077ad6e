// Package ocpp writes the steps of a schedule as an OCPP 1.6 charging profile, the message
// that flexd pushes, and reads such a profile back as a charger would.
//
// A profile always ends: after its duration it no longer limits the charger. A charger that
// loses its connection to flexd for good can therefore still charge.
//
// It is a TxProfile of the kind Absolute, in watts, on stack level [StackLevel], so that a new
// one replaces the one before. Its id is a hash of the asset's id, the same for all profiles
// of the asset. Steps follow each other without a gap, begin and end at whole seconds, and
// neighbours of one limit become one period, of which there are at most [MaxPeriods]. A limit
// below zero, by which a car discharges, is written only for an endpoint that declares that it
// accepts it; OCPP 1.6 has none.
package ocpp
