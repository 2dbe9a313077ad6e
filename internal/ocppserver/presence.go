package ocppserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// presence is whether a charger and its platform are there, as the people who run them see it.
type presence struct {
	ID        string             `json:"id"`
	Connected bool               `json:"connected"`
	Platform  *platformPresence  `json:"platform,omitempty"`
	Plugs     []connectorPresent `json:"connectors"`
}

// platformPresence is whether a charger's platform is there.
type platformPresence struct {
	Address   string `json:"address"` // with the charger's id
	Connected bool   `json:"connected"`
	// messages that it has not yet answered
	Waiting  int  `json:"waiting"`
	ReadOnly bool `json:"read_only"`
}

// connectorPresent is what a connector said last.
type connectorPresent struct {
	Number      int    `json:"connector_id"`
	Status      string `json:"status"` // empty until it says one
	Transaction int    `json:"transaction_id,omitzero"`
}

// presence returns what is known of a charger.
func (c *charger) presence() presence {
	c.mu.Lock()
	defer c.mu.Unlock()

	p := presence{
		ID:        c.id,
		Connected: c.link != nil,
		Plugs:     []connectorPresent{},
	}

	if u := c.up; u.named() {
		p.Platform = &platformPresence{
			Address:   u.url,
			Connected: u.link != nil,
			Waiting:   len(u.errands),
			ReadOnly:  u.readOnly,
		}
	}

	for _, number := range c.numbers() {
		n := c.connectors[number]
		p.Plugs = append(p.Plugs, connectorPresent{number, n.status, n.tx})
	}

	return p
}

// showChargers answers with all chargers that have connected, by id.
func (b *Bridge) showChargers(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	all := maps.Clone(b.chargers)
	b.mu.Unlock()

	list := []presence{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[id].presence())
	}

	writeJSON(w, list)
}

// showCharger answers with one.
func (b *Bridge) showCharger(w http.ResponseWriter, r *http.Request) {
	c, ok := b.known(w, r)
	if ok {
		writeJSON(w, c.presence())
	}
}

// writeJSON answers with a value. Whoever asked is gone if it fails.
func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
