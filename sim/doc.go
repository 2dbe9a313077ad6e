// Package sim simulates homes: chargers that receive and follow profiles, cars that come and
// go, home batteries, a market's prices, and faults. The demo shows it, and the stories run on
// it. Its devices know no more of flexd than a client does: they use the interface (package
// client) and receive signed pushes over HTTP.
//
// # Devices
//
// All devices are values that are run to an instant (RunTo). They compute exactly, from one
// change of power to the next: there is no time step whose length could change a result.
//
//   - A Charger follows the profiles that it accepted: at each instant the latest that has
//     begun. Before the first one it is not limited. A new profile replaces those that begin
//     no earlier. One that cannot be read is refused, and the earlier ones stay. A profile is
//     for one transaction: when the next car is plugged in, all are deleted. The charger
//     meters its energy by half-hours, and returns each half-hour once.
//   - A Car draws what is allowed, up to its own power, until it is full. It may react late,
//     draw less near its end, or have outages.
//   - A Battery follows its schedule.
//
// # Four kinds of simulation
//
//   - Evening (demo): visits and batteries against a running flexd, step by step. It reports
//     events and readings, and receives pushes at an Endpoint.
//   - Stories (stories/*.txtar): lines in the words of the energy trade, "at" an instant.
//     lineForms is the language; docs/stories.md explains each form. A line is something that
//     happens or something that must be true, and a story that fails names its line.
//   - Histories (DrawHistory, PlayHistory): days of homes drawn from a seed, with faults:
//     unreachable endpoints, restarts, kills, late readings, caps and instructions.
//   - A year and a night of real sessions and prices (data/), for the long campaigns.
//
// # How a history is played
//
// A separate flexd (app.Open) with a fake clock serves on real sockets of this machine. Time
// advances by half-hours, and by minutes soon after an event if a main fuse or a battery makes
// that matter. After each step all due work is done (App.RunDue, every six hours
// App.RunUntilIdle), every due push is tried and meters are reported; only then does time
// advance again. Nothing happens between two instants, so a history has one outcome:
// Outcome.Hash is the same each time and on each engine.
//
// A kill happens while the due work is done with the endpoint unreachable. The SQLite database
// is copied with a part of what was written to its journal meanwhile (drawn from the seed;
// none of it for a disk that loses writes), and the history continues with a new flexd on the
// copy, one lease later. On PostgreSQL, whose files belong to its server, flexd dies before it
// has written any of it.
//
// # What must hold
//
// Each day at noon and at the end all rules are checked, and each violation is a line "law:
// what breaks it" in Outcome.Broken. Every need that could be met was met by its time; no cap
// and no fuse was exceeded; no charger was sent an older push after a newer one; no called car
// drew more than its schedule allowed; a balance is the sum of its transactions; every session
// is credited, with no energy beyond what meters read; and flexd verify finds nothing. Flex
// events have a baseline only in a history of many days; the tests of test/sums check what
// events earn. The error of PlayHistory is a failure of the simulation and never a violation.
//
// ShrinkHistory reduces a history that violates a rule: it removes runs of events, first half
// of them, then a quarter and so on down to one, as long as the history still fails.
package sim
