// Package homeassistant shows sites in Home Assistant by MQTT: entities, which it discovers by
// itself, their states, and buttons. It is a client of the interface like any other, and has
// access only to the sites that are named in its settings.
//
// # What is published
//
// For each site and asset it publishes a retained description below the discovery topic, and
// states below flexd's own topic each Settings.Every. The bridge's status topic says online or
// offline. Offline is also its last will, so that entities of a bridge that died are shown as
// unavailable. Only chargers and cars have buttons, as flexd accepts such events only for
// them. A press of the button "charge now" becomes a charge-now event of Settings.ChargeFor,
// one of "skip tonight" a skip-night event.
//
// # Failures
//
//   - flexd does not answer at the start: Run fails. If it does not answer later, that is
//     logged, and the last states stay.
//   - flexd does not have one of several sites: that is logged at the start, the others are
//     shown, and the site is shown once flexd has it. If it has none of them, Run fails.
//   - flexd does not answer for one of several sites later: its last states stay, and the
//     others are updated.
//   - The broker is not reachable: the bridge tries again, at least every two minutes. After
//     each connection everything is published again.
//   - The broker publishes the last will of an old connection after a new one was made: the
//     bridge publishes online again.
//   - An asset is gone: its retained description is emptied, which removes it from Home
//     Assistant. Descriptions of assets that a broker retained from an earlier run are found
//     by subscribing to them.
//
// The bridge stores nothing: after a restart it asks flexd for everything again.
package homeassistant
