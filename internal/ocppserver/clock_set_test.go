package ocppserver_test

import (
	"testing"
	"time"

	"flexd/internal/ocppserver"
)

// TestBridge_ClockSetRight: a charger says once, after its boot, that its connector is free,
// two hours ahead of time. Then its clock is set, a car comes, and it says no more: the car is
// planned.
func TestBridge_ClockSetRight(t *testing.T) {
	timing := bootless
	timing.Late = 2 * time.Second
	s := open(t, ocppserver.Settings{Timing: timing})
	c := newSim(t, s.url, "CP1", s.now)
	c.connect()
	c.must("StatusNotification", c.statusBody("Available", s.now().Add(2*time.Hour)))
	c.say("Preparing")

	s.tick(timing.Late)
	s.eventually("the car is plugged in", s.plugged)
}
