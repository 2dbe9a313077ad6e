// Package sim simulates homes: chargers that receive and obey profiles, the cars
// that come and go, home batteries, a market's prices, and bad weather. The demo shows it, the stories run
// on it, and the devices in it know no more of flexd than a client does: they speak the interface (package client) and take signed pushes over HTTP.
//
// # Devices
//
// A Charger obeys the profiles that it accepted: at each instant the latest that has begun, and before the first nothing limits it. A new profile replaces those that begin no
// earlier. One that cannot be read is refused, and what was there stays. A profile is for one transaction: when the next car is plugged in, all are forgotten. It meters what it drew by half-hours, and returns each half-hour once. A Car takes what is offered up to its own power until it is
// full; it may react late, draw less near its end, or have outages. A Battery does what its schedule says. All of them are values that are run to an instant (RunTo) and compute
// exactly, from one change of power to the next: there is no step of time whose length could change a result.
//
// # Four ways to play
//
//   - Evening (demo): visits and batteries against a running flexd, step by step. It reports events and readings, and takes pushes at an Endpoint.
//   - Stories (stories/*.txtar): lines in an energy person's words, "at" an instant. lineForms is the language; docs/stories.md explains each form. A line is something that happens or
//     something that must be so, and a story that fails names its line.
//   - Histories (DrawHistory, PlayHistory): days of homes drawn from a seed, with faults: endpoints out of reach, restarts, kills, readings that come late, caps and instructions.
//   - A year and a night of real sessions and prices (data/), for the long campaigns.
//
// # How a history is played
//
// A flexd of its own (app.Open) with a fake clock serves on real sockets of this machine. Time passes by half-hours, and by minutes soon after something happened where a main
// fuse or a battery makes that matter. After each step all that is due is done (App.RunDue, every six hours App.RunUntilIdle), every due push is tried, meters are reported, and only then does time go on.
// Nothing happens between two instants, so a history has one outcome: Outcome.Hash is the same each time on each engine.
//
// A kill has what is due be done with the endpoint out of reach, copies the SQLite database with a part of what was written to its journal meanwhile (drawn from the seed; none of it for a disk that forgets), and continues
// with a new flexd on the copy, a lease later. On PostgreSQL, whose files are its server's, flexd dies before it has written any of it.
//
// # What must hold
//
// Each day at noon and at the end the laws are held, and each break is a line "law: what breaks it" in Outcome.Broken: every need that could be met was met by its time, no cap and no fuse was passed, no charger was sent an
// older push after a newer, no called car drew more than it was sent, a balance is the sum of its transactions, every stay is credited, with no energy beyond what meters read, and flexd verify finds nothing.
// A flex event has a baseline in a history of many days only: what events earn is judged by the tests of test/sums. PlayHistory's error is one of playing and never a broken law.
//
// A history that breaks a law is made small by ShrinkHistory: it takes out runs of happenings, half of them, then a quarter and so on to one, as long as it still fails.
package sim
