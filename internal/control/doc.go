// Package control follows each asset's plug sessions: events come in, schedules go out. It plans cars, home
// batteries, hot-water tanks and heat pumps, and carries out instructions of the grid.
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
// A plug-in with another vehicle rate is another car: it ends the open session and opens one. A plug-in within
// [FlickerMax] of the plug-out reopens the session. A plug-out ends the session, queues its settlement and
// retracts what was not sent yet. Control plans only at sites that have consented to full schedule control;
// events of others are kept and answered alike.
//
// # Guarantees
//
//   - Both or neither: the schedule and its place in the outbox are committed in the transaction that keeps
//     the event.
//   - By itself: a schedule meets the need with no further message, ends at ready-by (or with charge-now, if
//     that is later), and leaves the charger free from then on.
//   - Repeatable: the same problem gives the same plan. A new schedule has a reason that the asset's user, the
//     market, caps or an instruction gave; without one nothing is sent.
//   - Checked: a plan that breaks a law of package engine/check is not sent. The schedule in force stays, and
//     an error is logged.
//   - Fuse: cars that share a main fuse which was set keep it together, whichever of their schedules was
//     accepted, and for [TailTime] after the last ready-by.
//
// # From an event to a schedule
//
// Service.Event locks in this order: the organisation's caps, the site if it is planned as one, the asset. It
// stores the event, applies it and plans (replan):
//
//	inputs     what is needed, the tariff, the power, what was delivered already (needed, situation)
//	limits     the headroom that others leave under caps and behind the fuse (underBoth)
//	plan       engine/charge; then what a car gives, engine/discharge (planDischarge)
//	decide     Decide: replace the schedule in force, keep it, or look again at an instant
//	commit     curve, schedule, what caps did to it, outbox row (putInForce)
//
// What was delivered towards the same deadline counts. It is metered in half-hours that a reading covers, and
// elsewhere as planned by the schedules that the client accepted, each from then on. A new intent asks for its
// energy from then on.
//
// # Whether a plan replaces the schedule in force
//
// Only [Decide] says so, for events, prices, caps and what-if questions. Its rules, the first that applies:
//
//   - Required (a new intent or tariff, or no schedule yet), or the schedule in force breaks a cap: replace.
//   - The asset has 5 % less power ([PowerPercent]) than the schedule in force was planned with, and falls short: replace. Or it has
//     5 % more, and that schedule fell short: replace.
//   - The plan limits alike from now on, and gives alike: keep.
//   - After an event: replace.
//   - For prices, less than [MarketInterval] (5 min) after they last changed the schedule: look again at its end.
//   - The schedule in force brings less than the plan by ready-by, or draws more in peak time, by more than a minute
//     of charging ([Slack]) and 1 % of the need ([SlackPercent]): replace.
//   - The plan saves less than 2 p ([MinSaving]) and less than 2 % ([MinSavingPercent]): keep. Where the plan has an
//     allowance for what the asset was measured to draw, and only inputs changed, less than 2 p.
//   - It changes the running half-hour and saves less than 5 p ([MinSavingRunning]): look again at its end.
//   - Else replace; under caps only after MarketInterval.
//
// Under caps a fleet is planned with its cars charging alone, and again around those that discharge by their schedules in force: the
// second counts if nobody else lacks more by it. Then each that may discharge is planned by itself (discharge_caps.go).
//
// What a car gives is compared too: it is replaced if the car would come out short by it or may not give it any more,
// and else if another way saves the household [DischargeMinSaving]. A plan that breaks a law of engine/check replaces nothing.
//
// # What changes without an event
//
// Service.PlanDue is the background job. It is safe to run twice, on several machines.
//
//   - Wave: prices became known. The plugged-in sessions are cut into parts of 1,000. A process leases up to
//     four parts for a minute, plans them on one snapshot, and commits part by part. A part whose lease ran out or
//     that a newer wave laid out again commits nothing. store.Tx.Replace replaces a schedule only if it is still the
//     one that was compared, so an event in between wins. JoinWaves works on waves of other processes.
//   - Marks: a session is due at an instant, because of the market (due_for = market) or of its inputs
//     (inputs). Inputs are looked at on a snapshot, and only those whose schedule would change are locked.
//     What cannot be read or planned stays marked, is tried once in a run, and holds up no other.
//   - Caps: the fleet is planned as one problem by the process that leased the caps. It plans on a snapshot
//     and commits if the version of the caps is unchanged, so that events do not wait. After three
//     snapshots in vain it plans within the transaction, and events wait. Between two fleet plans each event
//     plans its asset in the headroom that the others' schedules leave. A fleet plan that only saves money is
//     committed if it pays for all of its pushes, and meets no less of the needs (keepUnlessBetter).
//
// # Main fuse
//
// Cars at a site whose import capacity was set are planned as one where they can exceed it. They are planned
// one after the other, least slack first, each within its own share and what nobody has a share in. After its need is met a
// car has its part of what the unfinished leave (its tail, fuse_turns.go). Last, check.Fuse, which shares no code
// with the planner, adds all of it up. What breaks the fuse is cut down, named in the origins of its inputs and
// planned again after [MarketInterval]; Refused counts it.
//
// Handover of power between the cars (fuse_handover.go). A charger follows one of the schedules that were sent to it since the
// last that its client took and that did not fail at the charger; which one is not known (mayDraw). A car has a plan once all have
// accepted theirs (want), and what it is sent now (core):
//
//	settled ── a new plan has it take what another may be drawing ──► waiting: sent what fits both, marked after [FuseInterval]
//	   ▲                                                                │  ▲
//	   └────────── all others have accepted what gives way ─────────────┘  └── an answer is late, missing or a failure
//
// It rests on these rules:
//
//   - At any second the most of what each charger may be doing, and of what it is sent, is together within each phase of the fuse.
//     So the power that one has keeps being counted for it until its client has accepted a schedule without it.
//   - A car is sent as much of its need as what its charger may be doing brings, unless its plan has it do with less once all have
//     accepted, as the needs of all are more than the fuse carries. First it is planned at those of its new times that are free. What
//     is missing then it takes at times that it has already, which are always free for it by the first rule, and then at times that
//     nobody has (yield). What that makes no other than the schedule in force is not sent, unless somebody asked for it.
//   - So a swap that would leave one of two cars short for a while is not made: both stay. Power that is free at another time is
//     passed on in as many steps as there are cars between, the last of the row first.
//   - An acceptance that is late or comes twice only shortens the list of what a charger may be doing. One that fails leaves it.
//     A process that dies loses nothing: lists, schedules and marks are stored.
//
// A site of which a schedule cannot be read is left as it is, and marked. Under caps the commit fails instead.
//
// # Ramp
//
// FollowFleet sets the time D over which starts are spread, from the power of the fleet, and of each GSP group and constraint group, and
// Service.Ramp (watts a minute of all, and of a group). An asset has the longest D of those it is in.
// An asset's offset is fixed as its session begins, so no plan changes because the fleet grew. Cars that are planned
// behind a main fuse together have no ramp. Package engine/ramp has the rule.
//
// # Batteries, tanks and heat pumps
//
// Each is planned to the end of tomorrow once in a half-hour, and when prices, its tariff or a reading come in. A battery
// whose state of charge is read a tenth of its capacity off its plan is planned at once, at most every
// [ChargeInterval].
//
//   - What a battery does in the next two half-hours is dispatched, each once, if it charges or discharges and the
//     organisation has a dispatch endpoint. The modes up to store.BatteryPlan.DispatchedTo are fixed in later plans,
//     until a limit that was lowered leaves them no headroom: takeBack replaces these by dispatches of 0 kW.
//   - While a car charges a battery only charges or is locked; while a car gives it neither charges nor covers the
//     home. What guardBattery finds to break the fuse or the export limit is locked.
//   - A tank or heat pump gets its windows as a push. A plan that changes none is not sent.
//   - Behind a main fuse a heater that is cold asks cars that can wait for half-hours (heat_first.go), and one whose site has a car that
//     falls short gives up those that it needs (heat_yield.go).
//
// # Instructions
//
// An instruction asks assets of a scope to draw less or more than planned in a window of whole minutes. Who is called,
// and each one's new schedule, is committed with the instruction, under the locks of the organisation and its caps. The time that an asset leaves out
// (closed) is part of its inputs, so that every later plan keeps it.
//
//	ordered ─► running ─► ended
//	   └──────────┴─────► stopped: who is called returns to the plan without it, at once
//
// An asset is called by one instruction at most in the same half-hours. What shares a fuse, and a car that gives, is
// never called.
//
// FollowInstructions compares every five seconds what each called asset brings (by meter, acceptance or plan) with
// the target. What is missing is made up by further assets; where there is more than enough some are released. The
// time of the last look is compared when the change is committed, so of two processes one does it. After a look that
// found nobody to call it waits [InstructionTired].
//
// # Failures
//
//   - The process dies: events are committed or not; leases of parts and of caps run out after a minute; marks
//     stay due.
//   - A wake-up is lost: the job's period finds the same work.
//   - A record cannot be read (store.ErrUnreadable): its asset keeps its schedule and stays marked. The job fails,
//     named in its error, and the other assets are planned. Under a limit of its feeder's export it counts with all
//     that it can give; so does one that was freed at its site.
//   - Prices are missing: a plan is made on those that are known up to 48 hours ahead, and the rest is assumed
//     (charge.AssumedPrice).
//   - A limit's source is silent longer than its link allows: the fallback limit binds (WatchLinks).
//   - Caps were set while a wave was planned: the wave commits nothing, and the fleet is planned together.
//
// Units: power in W (flex.Watts), energy in Wh, money in micro-pounds where prices are concerned; instants in UTC,
// schedules in whole seconds. Records that nothing needs any more are deleted after [KeptFor] (Purge).
package control
