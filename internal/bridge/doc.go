// Package bridge is what people ask of a running `flexd ocpp`: the words of its answers, and a
// client. The bridge answers at its --office-listen, to who shows its token.
package bridge
