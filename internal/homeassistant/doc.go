// Package homeassistant shows sites to Home Assistant by MQTT: entities that it discovers by
// itself, their states, and buttons. It is a client of the interface like any other, and
// reaches the sites that it is given alone.
//
// # What is published
//
// For each site and asset a description below the discovery topic, retained, and states below flexd's own topic, every Settings.Every. The bridge's status
// topic says online or offline; offline is its last will too, so that entities of a bridge that died are shown as unavailable.
// A press of the button "charge now" becomes a charge-now event of Settings.ChargeFor, one of "skip tonight" a skip-night event.
//
// # Failures
//
//   - flexd does not answer at the start: Run fails. Later: it is logged, and what was shown stays.
//   - The broker is away: it is tried again, every two minutes at least. After each connection all is published again.
//   - The broker publishes an old connection's last will after the new one was made: the bridge says again that it is online.
//   - An asset that is gone: its retained description is emptied, which takes it out of Home Assistant. Descriptions that a broker
//     kept of assets from before are found by subscribing to them.
//
// Nothing is kept: after a restart all of it is asked for again.
package homeassistant
