package ocppserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"flexd/internal/bridge"
)

// presence describes a charger.
func (c *charger) presence() bridge.Charger {
	c.mu.Lock()
	defer c.mu.Unlock()

	p := bridge.Charger{
		ID:         c.id,
		Connected:  c.link != nil,
		Failures:   c.failures,
		Connectors: []bridge.Connector{},
	}

	if c.link != nil {
		p.OCPP = c.dialect().version
	}

	if u := c.up; u.hasPlatform() {
		p.Platform = &bridge.Platform{
			Address:   u.url,
			Connected: u.link != nil,
			Waiting:   len(u.queue),
			ReadOnly:  u.readOnly,
		}
	}

	for _, number := range c.numbers() {
		n := c.connectors[number]
		plug := bridge.Connector{
			Number:      number,
			Status:      n.status,
			Transaction: n.tx,
		}
		if !n.asset.ID.IsZero() {
			plug.AssetID = n.asset.ID.String()
		}

		p.Connectors = append(p.Connectors, plug)
	}

	return p
}

// showChargers lists all chargers that have connected, by id.
func (b *Bridge) showChargers(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	all := maps.Clone(b.chargers)
	b.mu.Unlock()

	list := []bridge.Charger{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[id].presence())
	}

	writeJSON(w, list)
}

// showCharger describes one charger, with the calls that may be made to it.
func (b *Bridge) showCharger(w http.ResponseWriter, r *http.Request) {
	c, ok := b.known(w, r)
	if ok {
		writeJSON(w, c.present(1))
	}
}

// showAsset describes the charger that an asset is a connector of, with the calls that may be
// made to it.
func (b *Bridge) showAsset(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	all := maps.Clone(b.chargers)
	b.mu.Unlock()

	for _, c := range all {
		for _, n := range c.presence().Connectors {
			if n.AssetID == r.PathValue("asset") && n.AssetID != "" {
				writeJSON(w, c.present(n.Number))
				return
			}
		}
	}

	http.Error(
		w,
		"no charger of this asset has connected to the bridge",
		http.StatusNotFound,
	)
}

// present is presence with the allowed calls and examples of them for a connector.
func (c *charger) present(connector int) bridge.Charger {
	p := c.presence()
	p.Calls = c.examples(connector)

	return p
}

// writeJSON writes a value as the answer. An error means that the client has gone.
func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
