// Package tank plans the element of a hot-water tank that is on or off for whole slots.
//
// The tank is one fully mixed store. Its level is the heat in it above the bottom of its
// comfort band, in whole watt-hours, below zero where it is colder. In each slot it loses the
// heat that is drawn and its losses, and the element, if it is on, adds its power for the
// length of the slot, at most up to the top of the band, where the thermostat stops it. Below
// the floor, where all water is cold, nothing more can be drawn.
//
// The goals are, in this order, least shortfall and least cost. The shortfall is how far the
// level is below zero at the end of each slot, added up, and what could not be drawn. So a
// cold tank has a plan too, the one that is warm again soonest.
//
// The plan is optimal: every reachable level is followed from slot to slot. Without the
// thermostat a level depends only on the number of slots in which the element was on, so there
// are few levels.
package tank
