// Package home makes a problem of package battery from a home battery of which only power and
// capacity are known. It adds the efficiencies and the reserve that are assumed, the saving
// that a change of mode must bring, and the salvage value of energy left at the end of the
// plan.
//
// The salvage value keeps a plan with a short horizon from emptying the battery at its end. It
// is the mean price of the cheapest quarter of the time, times the efficiency of charging: no
// battery is filled for that price, and none is emptied for less than it can be filled again
// for.
package home
