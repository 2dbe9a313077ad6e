// Package discharge plans one car that may discharge: when it discharges, and when it
// recharges that energy.
//
// # Model
//
// The car's session is cut into slots at half-hours and wherever permission to charge begins
// or ends. In each slot it charges, discharges, or does neither. The share Efficiency of what
// it draws is stored, and the same share of what it releases is delivered. The stored energy
// stays within the battery's limits; while it discharges, at least the reserve is left.
//
// The plan begins from a schedule that only charges and contains the need. At ready-by the car
// stores as much as by that schedule, so its shortfall never grows, and where the time does
// not suffice it discharges nothing. Of all such plans the one is chosen that costs the
// household least: energy bought at the import price, less energy discharged at the export
// price, plus the wear. The home's own load is not considered, so all discharged energy is
// sold.
//
// # Method
//
// Package site makes the plan, with a bound. Its energies become times of full power when the
// car charges, rounded up to the minute, and constant powers when it discharges, rounded down
// to 10 W, so the car stores at least what the plan says. Both schedules are then simulated
// step by step, and the plan's saving is the difference.
//
// If the car would alternate between discharging and charging, it is planned again with a cost
// for each start of charging (Problem.Turn), and of the two plans the one is taken that costs
// less with its starts counted. The bound is that of costs without starts.
package discharge
