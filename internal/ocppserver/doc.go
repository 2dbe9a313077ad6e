// Package ocppserver speaks OCPP 1.6J, 2.0.1 and 2.1 with chargers on one side and flexd's public interface on
// the other, for those who run chargers without a platform. It is a client like any other: it
// uses flexd only through the package client.
//
//	charger ── status, transactions, meter ──► bridge ── events, readings ──► flexd
//	charger ◄── SetChargingProfile ─────────── bridge ◄── signed push ─────── flexd
//	charger ─── GetCompositeSchedule ────────► bridge ── callback ──────────► flexd
//
// A charger's message is answered at once and changes the state that the bridge keeps of the charger. A goroutine for each
// charger compares that state with what flexd and the charger were last sent, and sends them what
// is missing (synchronise in work.go). After a lost connection, after a reboot on either side and in normal life the
// path is the same. The state in memory can be lost: chargers report again how their connectors
// are, and flexd shows the schedule in force. What neither repeats is kept in a file for each
// charger, if there is a State directory, before the message is answered.
//
// In a sandbox the bridge's clock is the organisation's, which can be advanced (sandbox_clock.go). The signatures of pushes are
// checked by the true time, by which they are made.
//
// # Two dialects
//
// Inside the package the terms are those of OCPP 1.6. A message of 2.0.1 is translated into them in
// takeStation, and a call to such a charger out of them in station.call; every rule is between the two,
// and written once. The text that names a transaction becomes a number, a hash of it, an EVSE a connector,
// a variable a configuration key, and the state of a TransactionEvent a status.
//
// OCPP 2.1 is the dialect of 2.0.1, and the only one in which cars discharge. In a plan that is a limit below
// zero: for a station of 2.1 that says that it can (V2XChargingCtrlr.Enabled) it is written as a setpoint of
// the mode CentralSetpoint, for all others as a pause. A station that refuses each form with setpoints is
// sent the plan without, until it connects again.
//
// The frames of all versions are read by this package. The usual library (lorenzodonini/ocpp-go) is used only in tests, as the
// charging station: it validates before a rule sees the message, so that one unknown word of a charger loses
// the whole message, and its server refuses a charger whose dead connection is still open.
//
// # Meter
//
// A connector's energy is taken from the best measurement that its charger sends: a register, else the
// energy of intervals, else power over time; measured at the outlet, else the cable, the inlet,
// the body, else for the whole charge point if it has one connector; the total, else the sum
// of the phases. A value with the context Transaction.Begin counts only at the beginning of its transaction. meterStart
// and meterStop are values of the same register.
//
// Registers are kept by time for 24 hours, so that the order of arrival does not matter. A
// register may not fall and may not rise by more than power times time, and 10 %; a difference of 1 Wh or of the
// last digit is ignored, as meterStart and meterStop are whole Wh. A value that does is
// doubtful:
//
//   - a later register that fits those before it shows that the doubtful one was wrong;
//   - two doubtful ones that agree show that the one before them was wrong, or that the register
//     restarted; zeros and the largest numbers show nothing;
//   - a transaction's first register that is lower than the last one, and the next one agrees
//     with, shows a register that restarts with each transaction.
//
// Between two registers the energy is divided over time by samples of power, else by what the
// plan allowed if all of it was used, else evenly if they are at most 30 minutes apart, else
// not at all. Nothing flows before the first transaction and after the last one. A half-hour is
// passed on when all of it is known, once more when it is known better, and never above the
// charger's power: then it is held back, and the log says why.
//
// # Clock
//
// A message whose stamp lies in the future shows a clock that is ahead; two messages that
// arrived at least 5 seconds apart and are off by the same show any other error. Stamps are
// corrected by it, and profiles are written in the charger's time. A message of another time
// waits up to two minutes for the clock to be known, then its stamp is taken as it is.
//
// # Profiles
//
// A schedule that flexd pushed is in one of these states for its connector:
//
//	waiting    no charger has claimed the asset's name, or it is offline: RECEIVED
//	sent       the charger took it: ACCEPTED
//	obeyed     its composite schedule, or its status and meter, agree with the profile: EXECUTED
//	mended     they differ a minute after a step was due: cleared and sent again, once a step
//	failed     they still differ, or it did not answer three times: FAILED; obeyed may follow
//	refused    it took it in no form: REJECTED
//	over       the schedule has ended, or the car has gone: it is cleared
//
// An answer that comes up to ten minutes after a call was given up still counts: a profile that was accepted is
// sent, even if it had failed, a form that was refused is not tried again, and other answers are used, too
// (late.go).
//
// A boot, a new connection, the start of a transaction and a newly found clock error
// lead back to waiting. The forms are tried in this order: what the charger took before; then
// for its unit and the other one, for its highest stack level, the one below and 0, the
// purposes TxProfile (within a transaction), TxDefaultProfile on the connector, on connector 0,
// and ChargePointMaxProfile (both only if there is one connector); then all those in amperes again in whole
// amperes. A CALLERROR is a refusal. Where no answer comes, the profile is tried again from the first form.
//
// A profile begins a minute in the past, so that a charger is never without one, and
// ends with its schedule, so that no charger is limited for ever. No limit lies between 0 and 6 A a phase
// or above the charger's power. GetCompositeSchedule asks for 60 s, once, within a transaction.
//
// A floor is a TxDefaultProfile without an end on level 0, below the plan: the power that a charger allows
// when its plan is over and no other comes. On a charger with one level a plan replaces the floor, and ends
// with the floor's limit.
//
// # Upstream
//
// A charger may belong to a platform above. Messages that the platform has to answer are answered when it has,
// in other goroutines, so that the reading of a connection never waits; all messages go up in one queue, in the
// charger's order. A message that comes while the connection is being made waits for it, but no longer
// once an attempt has failed. Calls have ids of their own on each connection. A transaction that began
// while the platform was down has two numbers, which are exchanged on the way; in 2.0.1 its text is
// the charger's own. Each message is sent in the version that it came in: what waits in the other one
// has a connection of its own.
//
// # Authentication
//
// A charger shows a password or a certificate of its id. Without one it is admitted only with the option NoPassword,
// and its readings are not passed on. A connector whose name could be that of another charger's is
// served for neither. A push is taken for the asset whose profile it is, and not after a newer one.
package ocppserver
