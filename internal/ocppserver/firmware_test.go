package ocppserver_test

import (
	"testing"

	"flexd/internal/ocppserver"
)

// TestBridge_TellsFirmware: flexd knows the firmware that a charger named at its boot, and the
// newer one after an update.
func TestBridge_TellsFirmware(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	for _, version := range []string{"7.1", "7.2"} {
		c.firmware = version
		c.boot()
		s.eventually("flexd knows firmware "+version, func() bool {
			a, err := s.client.Asset(t.Context(), s.asset)
			s.must(err)
			return a.Properties.Firmware != nil && *a.Properties.Firmware == version
		})
		c.hangUp()
	}
}
