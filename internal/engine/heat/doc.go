// Package heat plans a heat pump that keeps the rooms of a house in a comfort band.
//
// The house is one store of heat: it loses heat to the outdoors in proportion to the
// difference of temperature, and gains what the heat pump gives. In each slot one of a few
// choices is made: the heat pump is off, or heats with at most its power until the room has
// the choice's target temperature. A choice may be a lock, which some heat pumps allow only
// for some slots in a row. Temperatures are on a grid of 0.02 degrees, to which each slot's
// end is rounded.
//
// The goals are, in this order, least shortfall and least cost. The shortfall is a sum over
// the ends of all slots, in steps of the grid: how far the temperature is below the band, and
// how far heating brought it above. So a cold house has a plan too, the one that is warm again
// soonest. Switching on has a cost.
//
// The plan is optimal on the grid: dynamic programming from the last slot to the first finds
// the best continuation from every temperature that can be reached.
package heat
