// Package control follows each asset's plug sessions: it takes in events and puts out
// schedules. It plans cars, home batteries, hot-water tanks and heat pumps, and carries out
// instructions of the grid.
//
// # States of a session
//
//	                 plug-in                     plug-out, another car,
//	unplugged ─────────────────────► plugged in ── end of control ──► unplugged
//	    ▲                            │  ▲     │
//	    └── plug-in within a minute ─┘  └─────┘
//	        of plug-out: as if it       intent, tariff, charge-now,
//	        had never been out          new prices: planned again
//
// A plug-in with another vehicle rate is another car: it ends the open session and opens one.
// A plug-in within [FlickerMax] of the plug-out reopens the session. A plug-out ends the
// session, queues its settlement and retracts pushes that were not sent yet. Control plans
// only at sites that have consented to full schedule control; events of other sites are stored
// and answered in the same way.
//
// # Guarantees
//
//   - Atomic: the schedule and its row in the outbox are committed in the transaction that
//     stores the event.
//   - Self-sufficient: a schedule meets the need with no further message, ends at ready-by (or
//     with charge-now, if that is later), and leaves the charger unlimited from then on.
//   - Repeatable: the same problem gives the same plan. A new schedule is only sent for a
//     reason: the asset's user, the market, caps or an instruction changed something.
//   - Checked: a plan that breaks a rule of package engine/check is not sent. The schedule in
//     force stays, and an error is logged.
//   - Fuse: cars that share a main fuse whose capacity was set do not exceed it together,
//     whichever of their schedules were accepted, and for [TailTime] after the last ready-by.
//
// # From an event to a schedule
//
// Service.Event locks in this order: the organisation's caps, the site if it is planned as
// one, the asset. It stores the event, applies it and plans (replan):
//
//	inputs     what is needed, the tariff, the power, what was delivered already (inputs, inputsAndPrices)
//	limits     the headroom that others leave under caps and behind the fuse (limitsOf)
//	plan       engine/charge; for a car that may discharge also engine/discharge (planDischarge)
//	decide     Decide: replace the schedule in force, keep it, or look again at an instant
//	commit     curve, schedule, what caps did to it, outbox row (putInForce)
//
// Energy that was already delivered towards the same deadline counts. It is metered in
// half-hours that a reading covers; in others it is taken as planned by the schedules that the
// client accepted, each from its acceptance on. A new intent asks for its energy from its own
// time on.
//
// # Whether a plan replaces the schedule in force
//
// Only [Decide] says so, for events, prices, caps and what-if questions. The first of these
// rules that applies decides:
//
//   - Required (a new intent or tariff, or no schedule yet), or the schedule in force breaks a
//     cap: replace.
//   - The asset has 5 % less power ([PowerPercent]) than the schedule in force was planned
//     with, and falls short: replace. Or it has 5 % more, and that schedule fell short:
//     replace.
//   - The plan has the same limits from now on, and the same discharge: keep.
//   - After an event: replace.
//   - For prices, less than [MarketInterval] (5 min) after they last changed the schedule:
//     look again at the end of that time.
//   - The schedule in force brings less than the plan by ready-by, or draws more in peak time,
//     by more than a minute of charging ([Slack]) and 1 % of the need ([SlackPercent]):
//     replace.
//   - The plan saves less than 2 p ([MinSaving]) and less than 2 % ([MinSavingPercent]): keep.
//     If the plan has an allowance for the power that the asset was measured to draw, and only
//     inputs changed: keep if it saves less than 2 p.
//   - The plan changes the running half-hour and saves less than 5 p ([MinSavingRunning]):
//     look again at its end.
//   - Otherwise replace; under caps only after MarketInterval.
//
// Under caps a fleet is first planned with its cars only charging, and then again around those
// that discharge by their schedules in force; the second plan is used if it leaves no other
// asset with a larger shortfall. Then each car that may discharge is planned separately
// (discharge_caps.go).
//
// A planned discharge is compared too. It is replaced if the car would fall short because of
// it or may no longer discharge, and otherwise if another plan saves the household
// [DischargeMinSaving]. A plan that breaks a rule of engine/check replaces nothing.
//
// # What changes without an event
//
// Service.PlanDue is the background job. It is safe to run twice, and on several machines.
//
//   - Wave: new prices are published. The plugged-in sessions are divided into parts of 1,000.
//     A process leases up to four parts for a minute, plans them on one snapshot, and commits
//     part by part. A part commits nothing if its lease is over or a newer wave has divided
//     the sessions again. store.Tx.Replace replaces a schedule only if it is still the one
//     that was compared, so an event in between wins. JoinWaves works on waves of other
//     processes.
//   - Marks: a session is due at an instant, because of the market (due_for = market) or of
//     its inputs (inputs). Inputs are read on a snapshot, and only those sessions are locked
//     whose schedule would change. A session that cannot be read or planned stays marked, is
//     tried once in a run, and delays no other.
//   - Caps: the fleet is planned as one problem by the process that leased the caps. It plans
//     on a snapshot and commits if the version of the caps is unchanged, so that events do not
//     wait. After three snapshots that were overtaken it plans within the transaction, and
//     events wait. Between two fleet plans each event plans its asset in the headroom that the
//     others' schedules leave. A fleet plan that only saves money is committed if it pays for
//     all of its pushes and meets no less of the needs (keepUnlessBetter).
//
// # Main fuse
//
// Cars at a site whose import capacity was set are planned together if they could exceed it.
// They are planned one after the other, least slack first, each within its own share and the
// power that is in nobody's share. Once its need is met, a car has a part of what the
// unfinished ones leave (its tail, fuse_turns.go). Finally check.Fuse, which shares no code
// with the planner, adds up all schedules. A schedule that breaks the fuse is cut down, named
// in the origins of its inputs and planned again after [MarketInterval]; Refused counts these
// cases.
//
// Handover of power between the cars (fuse_handover.go). It is not known which schedule a
// charger follows: any that was sent since the last one that its client accepted and that did
// not fail at the charger (possibleDraw). There are two schedules for a car: the one that it is to
// have once all have accepted theirs (finalSteps), and the one that it is sent now (stepsForNow):
//
//	settled ── a new plan has it take what another may be drawing ──► waiting: sent what fits both, marked after [FuseInterval]
//	   ▲                                                                │  ▲
//	   └──── all others have accepted schedules without that power ─────┘  └── an answer is late, missing or a failure
//
// These rules apply:
//
//   - At every second the sum over all chargers, each at the most that any of its possible
//     schedules and the one that is sent to it draws, fits each phase of the fuse. So power
//     counts as a charger's until its client has accepted a schedule without it.
//   - A car is sent as much of its need as its charger's possible schedules bring, unless the
//     final plan gives it less because the needs of all exceed the fuse. It is planned first
//     at those of its new times that are free. The remainder is planned at times that it has
//     already, which are always free for it by the first rule, and then at times that nobody
//     has (planUntilAccepted). A result equal to the schedule in force is not sent, unless somebody asked
//     for it.
//   - A swap that would leave one of two cars short for a while is therefore not made: both
//     stay. Power that is free at another time is passed on in as many steps as there are cars
//     in between, the last of the row first.
//   - An acceptance that is late or repeated only shortens the list of a charger's possible
//     schedules. A failed one does not change it. A process that dies loses nothing: lists,
//     schedules and marks are stored.
//
// If a schedule of a site cannot be read, the site is left as it is, and marked. Under caps
// the commit fails instead.
//
// # Ramp
//
// SetRamp sets the time D over which starts are spread, for the fleet and for each GSP
// group and constraint group, from its power and Service.Ramp (watts a minute for the fleet,
// and for a group). An asset has the longest D of those it is in. An asset's offset is fixed
// as its session begins, so no plan changes because the fleet grew. Cars that are planned
// together behind a main fuse have no ramp. Package engine/ramp has the rule.
//
// # Batteries, tanks and heat pumps
//
// Each is planned to the end of tomorrow once in a half-hour, and when prices, its tariff or a
// reading arrive. A battery whose measured state of charge differs from its plan by a tenth of
// its capacity is planned at once, at most every [ChargeInterval].
//
//   - A battery's modes of the next two half-hours are dispatched, each once, if it charges or
//     discharges and the organisation has a dispatch endpoint. Later plans do not change the
//     modes up to store.BatteryPlan.DispatchedTo, unless a lowered limit leaves no headroom
//     for them: withdrawDispatches replaces these by dispatches of 0 kW.
//   - While a car charges, a battery only charges or is locked; while a car discharges, it
//     neither charges nor supplies the home. guardBattery locks a battery whose plan would
//     break the fuse or the export limit.
//   - A tank or heat pump receives its windows as a push. A plan that changes none is not
//     sent.
//   - Behind a main fuse a heater whose home is cold asks for half-hours of cars that can wait
//     (heat_first.go), and a heater at a site where a car falls short gives up the half-hours
//     that the car needs (heat_yield.go).
//
// # Instructions
//
// An instruction asks assets of a scope to draw less or more than planned in a window of whole
// minutes. The choice of assets and their new schedules are committed with the instruction,
// under the locks of the organisation and its caps. The time in which a called asset must not
// draw (closed) is part of its inputs, so that every later plan observes it.
//
//	ordered ─► running ─► ended
//	   └──────────┴─────► stopped: called assets return to the plan without it, at once
//
// An asset is called by at most one instruction in the same half-hours. Assets that share a
// fuse, and cars that discharge, are never called.
//
// FollowInstructions compares every five seconds what each called asset brings (by meter,
// acceptance or plan) with the target. It calls further assets for what is missing, and
// releases some where there is more than enough. The time of the last check is compared when
// the change is committed, so that of two processes only one makes it. After a check that
// found nobody to call it waits [InstructionRetry].
//
// # Failures
//
//   - The process dies: each event is committed or not; leases of parts and of caps end after
//     a minute; marks stay due.
//   - A wake-up is lost: the next run, at the job's period, finds the same work.
//   - A record cannot be read (store.ErrUnreadable): its asset keeps its schedule and stays
//     marked. The job's error names the asset, and the other assets are planned. Under a limit
//     of its feeder's export it counts with all that it can discharge; so does one that was
//     freed at its site. A battery counts beside the others of its site with its full power,
//     and its site's cars and other batteries are planned as if it covered nothing.
//   - Prices are missing: the plan uses those that are known up to 48 hours ahead, and assumes
//     the rest (charge.AssumedPrice).
//   - A limit's source is silent for longer than its link allows: the fallback limit applies
//     (WatchLinks).
//   - Caps were set while a wave was planned: the wave commits nothing, and the fleet is
//     planned together.
//
// Units: power in W (flex.Watts), energy in Wh, money in micro-pounds where prices are
// concerned; instants in UTC, schedules in whole seconds. Records that are no longer needed
// are deleted after [Retention] (Purge).
package control
