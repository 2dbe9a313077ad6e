// Package grid is the service that says what a fleet can do for the grid.
//
// # Envelope
//
// Service.Envelope reads in one snapshot which assets are plugged in, and their schedules in
// force. It answers, from now to the end of the 48th half-hour, what they draw by plan and,
// with package engine/envelope, the least and the most that they can draw in every window of
// half-hours while every need is still met by its ready-by.
//
// An asset may draw at its schedule's power in the off-peak hours before ready-by, and
// wherever its schedule draws already. What it has drawn is what was delivered when the
// schedule was made and what the schedule has allowed since. It needs the rest, and can draw
// at most that or what remains of its schedule, whichever is more. A need that ends after the
// 48 half-hours counts within them only as far as the time after them does not suffice.
//
// Service.Follow answers for the same assets whether they can draw a profile exactly, with
// each asset's part or with a certificate that they cannot. It stores and sends nothing.
//
// Charge-now is drawn by plan and never moved. An asset without a schedule in force is counted
// but part of no sum, as nobody controls it. Caps that assets share are not considered.
package grid
