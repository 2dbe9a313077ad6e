// Package tank plans the element of a hot-water tank that is on or off for whole slots.
//
// The tank is one fully mixed store. Its level is the heat in it above the bottom of its comfort band,
// in whole watt-hours, below zero where it is colder. In each slot what was drawn and lost leaves it,
// and the element adds its power for the length of the slot if it is on: no more than up to the top
// of the band, where the thermostat stops it. Below the floor, where all water is cold, nothing more
// can be drawn.
//
// The order is: least shortfall, then least cost. The shortfall is what the level lacks at the end
// of each slot, added up, with what could not be drawn: so a cold tank has a plan too, the one that
// is warm again soonest.
//
// The plan is the best of all: every reachable level is followed from slot to slot. Without the
// thermostat there are as many as slots in which the element was on, so that there are few.
package tank
