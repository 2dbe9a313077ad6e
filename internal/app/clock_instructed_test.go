package app

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// instructedSteps plays an evening and a night with instructions and returns what is on record
// then.
func instructedSteps(t *testing.T, url string, seed uint64, step time.Duration) []string {
	t.Helper()
	start := time.Date(2026, time.January, 15, 17, 5, 0, 0, time.UTC)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer receiver.Close()

	s := openClocked(t, url, start, receiver.URL)
	r := rand.New(rand.NewPCG(seed, 17))
	for _, car := range s.chargers {
		s.act(0, car, flex.WattHours(10_000+r.IntN(30_000)), 8+r.IntN(8))
	}

	for range 6 {
		s.advance(s.at.Add(time.Duration(1+r.IntN(90))*time.Minute), step)
		s.instruct(r)
		s.advance(s.at.Add(time.Duration(1+r.IntN(90))*time.Minute), step)
		s.act(r.IntN(10), s.chargers[r.IntN(len(s.chargers))], flex.WattHours(5000+r.IntN(30_000)), 1+r.IntN(12))
	}

	s.advance(start.Add(24*time.Hour), step)
	s.app.Push.Close()
	all := s.records()
	storetest.Close(t, s.app.DB)

	return all
}

// instruct sends an instruction of some half-hours that begins at a minute of the next hours.
func (s *clocked) instruct(r *rand.Rand) {
	from := s.at.Add(time.Duration(r.IntN(180)) * time.Minute)
	change := flex.Watts(1000 * (r.IntN(20) - 10))
	_, _ = s.app.Control.SendInstruction(s.T.Context(), s.Org, flex.Instruction{
		Span:   flex.Span{From: from, To: from.Add(time.Duration(1+r.IntN(5)) * flex.HalfHour)},
		Change: change, Service: "dno", Who: "Ann", Reason: "feeder 7",
	})
}

// TestAdvance_InstructedSteps advances a clock while instructions wait, bind and are over,
// among cars that leave and are planned anew: at one go or by minutes, the records are the
// same.
func TestAdvance_InstructedSteps(t *testing.T) {
	for _, seed := range []uint64{4, 6, 8} {
		t.Run("sqlite", func(t *testing.T) {
			once := instructedSteps(t, storetest.SQLite(t), seed, AdvanceMax)
			differ(t, fmt.Sprintf("seed %d", seed), once, instructedSteps(t, storetest.SQLite(t), seed, time.Minute))
		})
	}

	t.Run("postgres", func(t *testing.T) {
		once := instructedSteps(t, storetest.Postgres(t), 10, AdvanceMax)
		differ(t, "seed 10", once, instructedSteps(t, storetest.Postgres(t), 10, 23*time.Minute))
	})
}
