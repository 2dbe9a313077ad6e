// Package ocppserver speaks OCPP 1.6J, 2.0.1 and 2.1 with chargers on one side and flexd's public interface on
// the other, for those who run chargers and no platform. It is a client like any other: it
// knows flexd by the client package alone.
//
//	charger ── status, transactions, meter ──► bridge ── events, readings ──► flexd
//	charger ◄── SetChargingProfile ─────────── bridge ◄── signed push ─────── flexd
//	charger ─── GetCompositeSchedule ────────► bridge ── callback ──────────► flexd
//
// What a charger says is answered at once and remembered as what is; a goroutine for each
// charger compares it with what flexd and the charger were last sent, and sends them what
// they miss. After a lost connection, a reboot on either side and in normal life that is the
// same path. All that is kept in memory can be lost: chargers say again how their connectors
// are, and flexd shows the schedule in force. What would be missed is kept in a file for each
// charger, if there is a State directory: what was answered is in it.
//
// # Two dialects
//
// The words of OCPP 1.6 are the package's own. What a charger says in 2.0.1 becomes the same facts
// in takeStation, and what it is asked is written anew in station.call; every rule lies between
// and is there once. A transaction's text stands as a number, a hash of it, an EVSE as a connector,
// a variable as a configuration key, and the state of a TransactionEvent as a status.
//
// OCPP 2.1 is the dialect of 2.0.1, and alone knows cars that give energy back. In a plan that is a limit below
// zero: for a station of 2.1 that says that it can (V2XChargingCtrlr.Enabled) it is written as a setpoint of
// the mode CentralSetpoint, for all others as a pause. A station that refuses each form with setpoints is
// sent the plan without, until it connects again.
//
// The frames are our own for all, and the field's library is the station of the tests alone:
// it decides what is valid before a rule sees it, so that one unknown word of a charger costs
// the whole message, and its server refuses a charger whose dead connection is still open.
//
// # Meter
//
// A connector's energy is taken from the best that its charger sends: a register, else the
// energy of intervals, else power over time; measured at the outlet, else the cable, the inlet,
// the body, else for the whole charge point if it has one connector; the total, else the sum
// of the phases. Transaction.Begin counts at the beginning of its transaction alone. meterStart
// and meterStop belong to whichever register it is.
//
// Registers are kept by time for 24 hours, so that the order of arrival does not matter. A
// register may not fall and may not rise by more than power times time, and 10 %; 1 Wh or the
// last digit are no difference, for meterStart and meterStop are whole Wh. One that does is
// doubtful:
//
//   - a later register that fits those before it shows that the doubtful one was wrong;
//   - two doubtful ones that agree show that the one before them was wrong, or that the register
//     began anew; zeros and the largest numbers show nothing;
//   - a transaction's first register that is lower than the last one, and the next one agrees
//     with, shows a register that begins anew with each transaction.
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
// waits up to two minutes for the clock to be known, then its stamp is taken for true.
//
// # Profiles
//
// A schedule that flexd pushed is in one of these states for its connector:
//
//	waiting    no charger has claimed the asset's name, or it is offline: RECEIVED
//	sent       the charger took it: ACCEPTED
//	obeyed     it says that it will do what was asked, or does it by status and meter: EXECUTED
//	mended     it does otherwise a minute after a step was due: cleared and sent again, once a step
//	failed     it still does otherwise, or did not answer three times: FAILED; obeyed may follow
//	refused    it took it in no form: REJECTED
//	over       the schedule has ended, or the car has gone: it is cleared
//
// An answer that comes up to ten minutes after a call was given up still counts: a profile that was accepted is
// sent, even if it had failed, a form that was refused is not tried again, and what else was said is taken up
// (late.go).
//
// A boot, a new connection, the start of a transaction and a clock that turns out to be another
// lead back to waiting. The forms are tried in this order: what the charger took before; then
// for its unit and the other one, for its highest stack level, the one below and 0, the
// purposes TxProfile (within a transaction), TxDefaultProfile on the connector, on connector 0,
// and ChargePointMaxProfile (both only if there is one connector); then all amperes again as whole
// ones. A CALLERROR is a refusal; no answer is none, and is tried again as a whole.
//
// A profile begins a minute in the past, so that no charger is without one for a moment, and
// ends with its schedule, so that none is bound for ever. No limit lies between 0 and 6 A a phase
// or above the charger's power. GetCompositeSchedule asks for 60 s, once, within a transaction.
//
// A floor is a TxDefaultProfile without an end on level 0, below the plan: what a charger gives
// when its plan is over and nobody speaks. A plan that takes its place, on a charger with one
// level, ends with it.
//
// # Upstream
//
// A charger may belong to a platform above. What has to be answered there is answered later,
// so that the reading of a connection waits for nobody; everything goes up in one queue, in the
// charger's order. A message that comes while the connection is being made waits for it, and for
// nothing once a try has failed. Calls have ids of their own on each connection. A transaction that began
// while the platform was down has two numbers, which are exchanged on the way; in 2.0.1 its text is
// the charger's own. Each message is sent in the version that it came in: what waits in the other one
// has a connection of its own.
//
// # Who speaks
//
// A charger shows a password or a certificate of its id. Without, it is let in by NoPassword
// alone, and its readings go no further. No charger claims a connector that may be another's by
// its name. A push is taken for the asset whose profile it is, and not after a newer one.
package ocppserver
