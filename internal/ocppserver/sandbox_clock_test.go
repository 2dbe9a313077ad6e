package ocppserver_test

import (
	"encoding/json"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// TestSandboxClock: the bridge goes by a sandbox's clock that is advanced. Its chargers are
// given that time, pushes, which are signed at the true time, are taken, and profiles are in
// the time of a charger that kept its own.
func TestSandboxClock(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.say("Preparing")
	s.callback(client.CallbackAccepted)
	s.obeys(c)

	morning := evening.Add(14 * time.Hour)
	_, err := s.client.SetClock(t.Context(), morning)
	s.must(err)

	s.eventually("the charger is given the sandbox's time", func() bool {
		var beat struct {
			CurrentTime time.Time `json:"currentTime"`
		}
		s.must(json.Unmarshal(c.must("Heartbeat", `{}`), &beat))

		return !beat.CurrentTime.Before(morning)
	})

	c.say("Available")
	s.eventually("the car has left", func() bool { return !s.plugged() })
	c.say("Preparing")
	s.eventually("another has come", s.plugged)
	s.callback(client.CallbackAccepted)
	s.tick(10 * time.Second) // its clock is known by two messages
	c.say("Preparing")
	s.eventually("the profile is in the charger's time", func() bool {
		day, night := c.allows(s.now().Add(11*time.Hour)), c.allows(s.now().Add(12*time.Hour))
		return day == 0 && night > 0.93*7400
	})
}

// TestSandboxClock_Production: a flexd that is no sandbox has no clock to go by, and the
// bridge goes by its own.
func TestSandboxClock_Production(t *testing.T) {
	s := openIn(t, flex.Production, ocppserver.Settings{}, func(*bench) {})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	var beat struct {
		CurrentTime time.Time `json:"currentTime"`
	}
	s.must(json.Unmarshal(c.must("Heartbeat", `{}`), &beat))
	if gap := s.now().Sub(beat.CurrentTime); gap < 0 || gap > patience {
		t.Errorf("the charger is given a time %v ago", gap)
	}
}
