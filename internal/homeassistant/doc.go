// Package homeassistant shows sites to Home Assistant by MQTT: entities that it discovers by
// itself, their states, and buttons. It is a client of the interface like any other, and
// has access only to the sites that are named in its settings.
//
// # What is published
//
// For each site and asset a description below the discovery topic, retained, and states below flexd's own topic, every Settings.Every. The bridge's status
// topic says online or offline; offline is its last will too, so that entities of a bridge that died are shown as unavailable.
// Chargers and cars have buttons, as flexd takes such events for them alone. A press of the button "charge now" becomes a charge-now event of Settings.ChargeFor, one of "skip tonight" a skip-night event.
//
// # Failures
//
//   - flexd does not answer at the start: Run fails. Later: that is logged, and the last states stay.
//   - flexd does not have one of several sites: that is logged at the start, the others are shown, and the site is shown once it is there.
//     Without any of them Run fails.
//   - flexd does not answer for one of several sites later: what is shown of it stays, and changes at the others are followed.
//   - The broker is not reachable: the bridge tries again, at least every two minutes. After each connection everything is published again.
//   - The broker publishes an old connection's last will after the new one was made: the bridge says again that it is online.
//   - An asset that is gone: its retained description is emptied, which takes it out of Home Assistant. Descriptions that a broker
//     kept of assets from before are found by subscribing to them.
//
// The bridge stores nothing: after a restart it asks flexd for everything again.
package homeassistant
