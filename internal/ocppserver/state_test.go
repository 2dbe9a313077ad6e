package ocppserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// kill ends the bridge as if it had been killed now: the next one begins with the files as
// they are at this instant.
func (s *bench) kill(settings *ocppserver.Settings) {
	s.Helper()
	if settings.State == "" {
		s.halt()
		s.bridge(*settings)
		return
	}

	next := s.TempDir()
	files, err := filepath.Glob(filepath.Join(settings.State, "*.json"))
	s.must(err)
	for _, path := range files {
		text, err := os.ReadFile(path)
		s.must(err)
		s.must(os.WriteFile(filepath.Join(next, filepath.Base(path)), text, 0o600))
	}

	s.halt()
	settings.State = next
	s.bridge(*settings)
}

// outcome is what flexd knows after a night.
type outcome struct {
	energy   []float64
	sessions int
	numbers  []int // of the transactions
}

// sessionNight runs a session of three hours, the meter sent every 5 minutes. The bridge is
// killed at the minutes given, right after it has answered.
func sessionNight(t *testing.T, state bool, kills ...int) (out outcome) {
	settings := ocppserver.Settings{Timing: bootless}
	if state {
		settings.State = t.TempDir()
	}

	s := open(t, settings)
	c := newSim(t, s.url, "CP1", s.now)
	c.unasked = true
	c.boot()
	c.say("Preparing")
	c.given()

	// A second after a half-hour began, whatever it took to come here.
	began := s.now().Truncate(flex.HalfHour).Add(flex.HalfHour + time.Second)
	s.tick(began.Sub(s.now()))
	restart := func(minute int) {
		if !slices.Contains(kills, minute) {
			return
		}

		c.hangUp()
		s.kill(&settings)
		c.url = s.url
		c.connect()
		if minute < 180 { // then no car is there
			c.given()
		}
	}

	tx := c.startAt(10_000, began)
	c.given()
	out.numbers = append(out.numbers, tx)
	restart(0)
	if len(kills) > 0 { // the answer was lost with the bridge, so it is said again
		out.numbers = append(out.numbers, c.startAt(10_000, began))
	}

	for minute := 5; minute < 180; minute += 5 {
		at := began.Add(time.Duration(minute) * time.Minute)
		s.tick(at.Sub(s.now()))
		c.must("MeterValues", fmt.Sprintf(`{"connectorId":1,"meterValue":[{"timestamp":%q,"sampledValue":[{"value":"%d"}]}]}`,
			at.UTC().Format(time.RFC3339Nano), 10_000+minute*100))

		restart(minute)
	}

	s.tick(began.Add(3 * time.Hour).Sub(s.now()))
	c.stopAt(tx, 28_000, "EVDisconnected", began.Add(3*time.Hour))
	restart(180)
	c.say("Available")
	s.tick(time.Second)
	s.eventually("the car is gone", func() bool { return !s.plugged() })
	s.tick(time.Hour)
	c.must("Heartbeat", `{}`)
	if state {
		s.eventually("six half-hours and an empty one are known", func() bool { return len(s.readings(flex.ChargerEnergy)) == 7 })
	}

	out.energy = s.readings(flex.ChargerEnergy)
	out.sessions = s.sessions()

	return out
}

// TestBridge_KilledInMidSession: a night in which the bridge is killed five times is the same
// to flexd as one in which it was not.
func TestBridge_KilledInMidSession(t *testing.T) {
	calm := sessionNight(t, true)
	killed := sessionNight(t, true, 0, 35, 60, 125, 180)
	if !slices.Equal(calm.energy, killed.energy) || calm.sessions != killed.sessions {
		t.Errorf("with kills %+v, without %+v", killed, calm)
	}
	if killed.numbers[0] != killed.numbers[1] {
		t.Errorf("a StartTransaction that was repeated after a kill has the numbers %v", killed.numbers)
	}
	if calm.sessions != 1 {
		t.Errorf("%d sessions of one plug", calm.sessions)
	}
}

// TestBridge_KilledWithoutState: the comparison above does notice what is lost.
func TestBridge_KilledWithoutState(t *testing.T) {
	calm := sessionNight(t, true)
	if killed := sessionNight(t, false, 0, 35, 60, 125, 180); slices.Equal(calm.energy, killed.energy) {
		t.Errorf("without its files a killed bridge lost nothing: %v", killed.energy)
	}
}
