// Package grid answers what a fleet can do for the grid.
//
// # Envelope
//
// Service.Envelope reads which assets are plugged in, in one snapshot, and what their schedules
// in force are. From now to the end of the 48th half-hour it says what they draw by plan, and
// with package engine/envelope the least and the most that they can draw in every window of
// half-hours, with every need still met by its ready-by.
//
// An asset may draw at its schedule's power in the off-peak hours before ready-by, and wherever
// its schedule draws already. It has drawn what was delivered when the schedule was made and
// what the schedule let it draw since. It needs what is then left, and draws at most that or
// what its schedule still has, whichever is more. What is needed beyond the 48 half-hours is
// needed here only as far as the time after them does not suffice.
//
// Service.Follow says of the same assets whether they can draw a profile exactly, with each
// asset's part or with a certificate. Nothing is stored and nothing is sent.
//
// Charge-now is drawn by plan and never moved. An asset without a schedule in force is counted
// and not part of any number: nobody controls it. Caps that assets share are not looked at.
package grid
