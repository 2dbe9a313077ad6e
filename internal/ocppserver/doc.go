// Package ocppserver speaks OCPP 1.6J, 2.0.1 and 2.1 with chargers on one side and flexd's
// public interface on the other, for those who run chargers without a platform. It is a client
// like any other: it uses flexd only through the package client.
//
//	charger ── status, transactions, meter ──► bridge ── events, readings ──► flexd
//	charger ◄── SetChargingProfile ─────────── bridge ◄── signed push ─────── flexd
//	charger ─── GetCompositeSchedule ────────► bridge ── callback ──────────► flexd
//
// A charger's message is answered at once and changes the bridge's state of the charger. A
// goroutine for each charger compares that state with what flexd and the charger were last
// sent, and sends them what is missing (synchronise in work.go). The same code runs in normal
// operation, after a lost connection and after a reboot on either side. The state in memory
// may be lost: chargers report the status of their connectors again, and flexd shows the
// schedule in force. What neither repeats is written to a file for each charger, if there is a
// State directory, before the message is answered.
//
// In a sandbox the bridge's clock is the organisation's, which can be advanced
// (sandbox_clock.go). The signatures of pushes are checked by the true time, by which they are
// made.
//
// # Two dialects
//
// Inside the package the terms are those of OCPP 1.6. takeStation translates a message of
// 2.0.1 into them, and station.call translates a call to such a charger back. All rules work
// on these terms, so each is written once. The text that names a transaction becomes a number
// (its hash), an EVSE a connector, a variable a configuration key, and the state of a
// TransactionEvent a status.
//
// OCPP 2.1 is treated like 2.0.1, and is the only version in which cars discharge. A plan
// expresses that by a limit below zero. For a station of 2.1 that declares
// V2XChargingCtrlr.Enabled it is written as a setpoint of the mode CentralSetpoint, for all
// others as a pause. If a station refuses each form with setpoints, it is sent the plan
// without them until it connects again.
//
// This package reads the frames of all versions itself. The usual library
// (lorenzodonini/ocpp-go) is used only in tests, as the charging station, for two reasons: it
// validates a message before any rule can read it, so that one unknown word of a charger loses
// the whole message; and its server refuses a charger whose dead connection is still open.
//
// # Meter
//
// A connector's energy is taken from the best measurement that its charger sends: a register,
// else the energy of intervals, else power over time; measured at the outlet, else the cable,
// the inlet, the body, else for the whole charge point if it has one connector; the total,
// else the sum of the phases. A value with the context Transaction.Begin counts only at the
// beginning of its transaction. meterStart and meterStop are values of the same register.
//
// Registers of the last 24 hours are stored by their time, so that the order of arrival does
// not matter. A register that falls, or rises by more than power times time and 10 %, is
// doubtful; a difference of 1 Wh or of the last digit is ignored, as meterStart and meterStop
// are whole Wh. Doubts are resolved so:
//
//   - a later register that fits those before it shows that the doubtful one was wrong;
//   - two doubtful ones that agree show that the one before them was wrong, or that the
//     register restarted; zeros and the largest numbers show nothing;
//   - a transaction's first register that is lower than the last one, and the next one agrees
//     with, shows a register that restarts with each transaction.
//
// Between two registers the energy is divided over time by samples of power; else by what the
// plan allowed, if all of it was used; else evenly, if they are at most 30 minutes apart; else
// not at all. No energy is assumed before the first transaction and after the last one. A
// half-hour is reported when all of it is known, and again when better values arrive. One
// above the charger's power is not reported, and the log says why.
//
// # Clock
//
// A message with a timestamp in the future shows that the charger's clock is ahead. Any other
// error is found by two messages that arrived at least 5 seconds apart and are off by the
// same. Timestamps are corrected by the error, and profiles are written in the charger's time.
// A message whose timestamp differs from the true time waits up to two minutes until the error
// is known; then its timestamp is used as it is.
//
// # Profiles
//
// A schedule that flexd pushed is in one of these states for its connector:
//
//	waiting    no charger has claimed the asset's name, or it is offline: RECEIVED
//	sent       the charger accepted it: ACCEPTED
//	obeyed     its composite schedule, or its status and meter, agree with the profile: EXECUTED
//	mended     they differ a minute after a step was due: cleared and sent again, once a step
//	failed     they still differ, or it did not answer three times: FAILED; obeyed may follow
//	refused    it accepted it in no form: REJECTED
//	over       the schedule has ended, or the car has gone: it is cleared
//
// An answer that arrives up to ten minutes after its call timed out still counts: an accepted
// profile is in the state sent, even if it had failed, a refused form is not tried again, and
// other answers are used, too (late.go).
//
// A boot, a new connection, the start of a transaction and a newly found clock error lead back
// to waiting. The forms are tried in this order: the one that the charger accepted before;
// then, for its unit and the other one, for its highest stack level, the one below and 0, the
// purposes TxProfile (within a transaction), TxDefaultProfile on the connector, on connector
// 0, and ChargePointMaxProfile (both only if there is one connector); then all those in
// amperes again in whole amperes. A CALLERROR is a refusal. Where no answer comes, the profile
// is tried again from the first form.
//
// A profile begins a minute in the past, so that there is no gap before it, and ends with its
// schedule, so that no charger is limited for ever. No limit is between 0 and 6 A a phase or
// above the charger's power. GetCompositeSchedule asks for 60 s, once, within a transaction.
//
// A floor is a TxDefaultProfile without an end on level 0, below the plan: the power that a
// charger allows when its plan is over and no other follows. On a charger with only one level
// a plan replaces the floor, and ends with the floor's limit.
//
// # Upstream
//
// A charger may also belong to another platform, to which the bridge forwards its messages. A
// message that the platform must answer is answered once it has, in another goroutine, so that
// the reading of a connection never waits. All messages are forwarded in one queue, in the
// charger's order. A message that arrives while the connection to the platform is being made
// waits for it, until an attempt has failed. Calls have separate ids on each connection. A
// transaction that began while the platform was down has two numbers, which the bridge
// translates; in 2.0.1 its text is the charger's own. Each message is sent in its own version
// of OCPP: messages that wait in the other version have a separate connection.
//
// # Authentication
//
// A charger identifies by a password or a certificate with its id. Without one it is admitted
// only with the option NoPassword, and its readings are not reported. If a connector's name
// could also be that of another charger's connector, neither is served. A push is accepted
// only for the asset of its profile, and not after a newer one.
package ocppserver
