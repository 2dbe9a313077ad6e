// Package heat plans a heat pump that keeps the rooms of a house in a comfort band.
//
// The house is one store of heat: it loses to the outdoors in proportion to the difference, and gains what the
// heat pump gives. In each slot one of a few choices is made: the heat pump is off, or heats until the room has
// a temperature, which is the choice's target, with at most its power. A choice may be a lock, which some heat
// pumps take for some slots in a row only. Temperatures are on a grid of 0.02 degrees, to which each slot's end
// is rounded.
//
// The order is: least shortfall, then least cost. The shortfall is what the temperature lacks of the band's
// bottom at the end of each slot, and what heating brought it above the top, in steps of the grid, added up. So
// a cold house has a plan too, the one that is warm again soonest. Switching on costs.
//
// The plan is the best of all on the grid: the best way on from every temperature that can be reached is worked
// out from the last slot to the first.
package heat
