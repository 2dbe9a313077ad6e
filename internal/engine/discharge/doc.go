// Package discharge plans one car that may discharge: when it discharges, and when it buys that back.
//
// # Model
//
// The car's stay is cut into slots at half-hours and wherever it begins or ceases to be permitted to charge. In each slot it
// charges, discharges, or rests. Of what it takes, the part Efficiency is stored, and of what it releases that part
// arrives. What is stored stays within the battery; while it discharges, not less than the reserve is left.
//
// The plan begins from a schedule that charges alone, which has the need in it. By ready-by the car holds as
// much as by that schedule: so it never lacks more, and where the time does not suffice it discharges nothing. Of all such
// plans it takes the one that costs the household least: what is bought at the price of buying, less what is given at the
// price of selling, plus the wear. What the home draws itself is not looked at, so what is given is sold.
//
// # Method
//
// Package site plans it (a car by itself: see there), with a bound. Its energies become times of full power when
// it charges, rounded up to the minute, and constant powers when it discharges, rounded down to 10 W: so the car holds what
// the plan says or more. Both schedules are then played step by step, and what the plan saves is the difference.
//
// A car that discharges in turns, charging between them, is planned a second time with a cost of each time that it begins to charge
// (Problem.Turn), and of the two plans the one is taken that costs less with its turns counted. The bound is that of costs alone.
package discharge
