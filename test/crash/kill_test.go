// Package crash ends the real program and its database in the middle of their work and
// looks for what was acknowledged and is gone. What a test promises is shown to be seen: a
// planted loss is found.
package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"flexd/client"
	"flexd/internal/store/storetest"
)

// times returns how often a crash is tried: few, or as many as the variable says.
func times(t *testing.T, few int) int {
	text := os.Getenv("FLEXD_CRASHES")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("FLEXD_CRASHES: %v", err)
	}
	return n
}

// loadMax is how long a load goes on at most: go test gives ten minutes for all.
const loadMax = 8 * time.Minute

// load runs one worker a car while crash crashes something, over and over, and returns how
// often it did so before its time was over.
func load(s *service, cars []*car, crashes int, crash func()) (crashed int, acked int64) {
	site, err := s.client(4).Asset(s.Context(), cars[0].asset)
	if err != nil {
		s.Fatal(err)
	}

	var n atomic.Int64
	for end := time.Now().Add(loadMax); crashed < crashes && time.Now().Before(end); crashed++ {
		ctx, stop := context.WithCancel(s.Context())
		var wg sync.WaitGroup
		for _, c := range cars {
			wg.Go(func() { s.use(ctx, c, site.SiteID, &n) })
		}

		time.Sleep(time.Duration(50+rand.IntN(400)) * time.Millisecond)
		crash()
		stop()
		wg.Wait()
	}
	return crashed, n.Load()
}

func TestSIGKILL(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		t.Parallel()
		s, e := newService(t, url), newEndpoint(t)
		cars := s.chargers(16, e)
		var worst time.Duration
		n, acked := load(s, cars, times(t, 5), func() {
			s.kill(sigKill)
			worst = max(worst, s.start())
		})

		for _, l := range s.lost(cars, e) {
			t.Errorf("acknowledged and lost: %s", l)
		}
		s.kill(sigTerm)
		if out := s.run("verify"); !strings.Contains(string(out), "laws hold") {
			t.Errorf("verify: %s", out)
		}
		t.Logf(
			"%d SIGKILLs, %d acknowledged requests, ready again within %v",
			n,
			acked,
			worst.Round(time.Millisecond),
		)
	})
}

// A service that is told to stop answers what it has begun, and loses nothing.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	s, e := newService(t, storetest.SQLite(t)), newEndpoint(t)
	cars := s.chargers(16, e)
	load(s, cars, 2, func() {
		s.kill(sigTerm)
		if !s.cmd.ProcessState.Success() {
			t.Errorf("stopped with %v", s.cmd.ProcessState)
		}
		s.start()
	})

	for _, l := range s.lost(cars, e) {
		t.Errorf("acknowledged and lost: %s", l)
	}
	s.kill(sigTerm)
}

// TestSIGKILL_PlantedLoss takes an acknowledged record away behind the service's back: the
// harness must say so.
func TestSIGKILL_PlantedLoss(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	s, e := newService(t, url), newEndpoint(t)
	cars := s.chargers(4, e)
	load(s, cars, 2, func() {
		s.kill(sigKill)
		s.start()
	})

	// However little the load came to, there is one to be lost.
	c := cars[0]
	c.tried++
	in := client.Intent{EnergyRequiredKWh: energyOf(c.tried), ReadyBy: client.At(time.Now()), ChargingMode: client.ChargingMinimise}
	if err := s.client(4).SetIntent(t.Context(), c.asset, client.IntentEventRequest{Intent: in}); err != nil {
		t.Fatal(err)
	}
	c.intent = c.tried

	s.kill(sigKill)
	db, err := sql.Open("sqlite", strings.Replace(url, "sqlite:", "file:", 1))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := db.Exec(`UPDATE inputs SET need_wh = 0`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	s.start()
	defer s.kill(sigKill)
	if lost := s.lost(cars, e); len(lost) == 0 {
		t.Error("every intent was taken away, and the harness saw nothing")
	}
}

// A reading that was acknowledged and is taken away is found: readings are a fifth of what a load writes.
func TestSIGKILL_PlantedLossOfReadings(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		t.Parallel()
		s, e := newService(t, url), newEndpoint(t)
		cars := s.chargers(1, e)
		defer func() { s.kill(sigKill) }()
		for range 2 {
			if err := cars[0].read(t.Context(), s.client(4)); err != nil {
				t.Fatal(err)
			}
		}

		if lost := s.lost(cars, e); len(lost) > 0 || cars[0].halves != 2 {
			t.Fatalf(
				"before anything was planted %d readings were acknowledged, and lost is %q",
				cars[0].halves,
				lost,
			)
		}
		if err := storetest.Exec(t, url, `DELETE FROM reading WHERE at = (SELECT max(at) FROM reading)`); err != nil {
			t.Fatal(err)
		}
		if lost := s.lost(cars, e); len(lost) != 1 || !strings.Contains(lost[0], "2 readings acknowledged, 1 there") {
			t.Errorf("a reading was taken away, and the harness says %q", lost)
		}
	})
}

// The database crashes under load, and the service stays up: it answers 503 meanwhile, and
// nothing that it acknowledged is gone.
func TestPostgreSQLRestarted(t *testing.T) {
	t.Parallel()
	// Before it recovers, the server syncs each file of its folder; one call for all does as well.
	server := storetest.Server(t, "recovery_init_sync_method=syncfs")

	s, e := newService(t, server.URL), newEndpoint(t)
	cars := s.chargers(16, e)
	n, acked := load(s, cars, times(t, 3), func() {
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	})

	for _, l := range s.lost(cars, e) {
		t.Errorf("acknowledged and lost: %s", l)
	}
	s.kill(sigTerm)
	if out := s.run("verify"); !strings.Contains(string(out), "laws hold") {
		t.Errorf("verify: %s", out)
	}
	t.Logf("%d immediate restarts, %d acknowledged requests", n, acked)
}

// A request that was under way when its process was killed can be repeated under its
// Idempotency-Key at once, not only when the key's lease is over.
func TestSIGKILL_IdempotencyKey(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		t.Parallel()
		reached, answer := make(chan struct{}, 10), make(chan struct{})
		var slow atomic.Bool
		slow.Store(true)

		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			reached <- struct{}{}
			if slow.Load() {
				<-answer
			}
		}))
		defer receiver.Close()
		s := newService(t, database)
		s.run(
			"endpoint",
			"set",
			"Acme",
			"--url",
			receiver.URL+"/",
			"--allow-private-endpoints",
		)
		s.start()
		defer func() { s.kill(sigKill) }()

		ask := func() (int, error) {
			var token struct {
				Access string `json:"access_token"`
			}
			resp, err := http.PostForm("http://"+s.listen+"/auth/token-form", url.Values{"username": {"acme"}, "password": {s.password}})
			if err != nil {
				return 0, err
			}

			err = json.NewDecoder(resp.Body).Decode(&token)
			resp.Body.Close()
			if err != nil {
				return 0, err
			}

			r, _ := http.NewRequestWithContext(
				t.Context(),
				"POST",
				"http://"+s.listen+"/endpoints/schedule/test",
				nil,
			)
			r.Header.Set("Authorization", "Bearer "+token.Access)
			r.Header.Set("Idempotency-Key", "k")
			resp, err = http.DefaultClient.Do(r)
			if err != nil {
				return 0, err
			}
			resp.Body.Close()
			return resp.StatusCode, nil
		}

		go ask() // is cut off
		<-reached
		slow.Store(false)
		s.kill(sigKill)
		close(answer)
		s.start()
		const limit = time.Minute // the lease takes two

		for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			status, err := ask()
			if err == nil && status != http.StatusConflict {
				t.Logf(
					"%s: answered with %d after %v",
					database[:6],
					status,
					time.Since(start).Round(time.Millisecond),
				)
				if status == http.StatusNotFound {
					t.Error("the repeat looks for a test message that was rolled back")
				}

				return
			}
			if time.Since(start) > limit {
				t.Fatalf("repeated for %v: %d, %v", limit, status, err)
			}
		}
	})
}
