package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/store/storetest"
)

// An organisation moves to and fro between two databases that one flexd serves, while clients of it and of another add sites.
// The movers are killed, and the service is: every site that was acknowledged is there, once. Of 12 moves each
// has a mover killed, and every third the service.
func TestKill_CellMove(t *testing.T) {
	if os.Getenv("FLEXD_LONG") == "" {
		t.Skip("takes minutes: make long, or FLEXD_LONG=1")
	}

	const moves, patience = 12, 5 * time.Second
	storetest.EachURL(t, func(t *testing.T, home string) {
		north := storetest.SQLite(t)
		if !strings.HasPrefix(home, "sqlite:") {
			north = storetest.Postgres(t)
		}

		s := newService(t, home)
		s.flags = []string{"--cell", "north=" + north}
		var other map[string]string
		if err := json.Unmarshal(s.run("org", "add", "Other", "--username", "other", "--json"), &other); err != nil {
			t.Fatal(err)
		}
		s.start()

		writing, stop := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		acme := &siteWriter{service: s, user: "acme", password: s.password, first: 1}
		resting := &siteWriter{service: s, user: "other", password: other["password"], first: 1_000_000}
		writers.Go(func() { acme.write(writing) })
		writers.Go(func() { resting.write(writing) })

		draw := rand.New(rand.NewPCG(18, 2026))
		for n := range moves {
			to := []string{"home", "north"}
			mover := exec.Command(s.path, "cell", "move", "Acme", "--to", to[draw.IntN(2)], "--cell", "north="+north,
				"--database", home, "--key-file", s.keys, "--environment", "sandbox")
			if err := mover.Start(); err != nil {
				t.Fatal(err)
			}

			time.Sleep(time.Duration(draw.Int64N(int64(patience))))
			mover.Process.Kill()
			mover.Wait()
			if n%3 == 2 {
				s.kill(sigKill)
				s.start()
			}
			s.run("cell", "move", "Acme", "--to", to[(n+1)%2], "--cell", "north="+north)
		}

		stop()
		writers.Wait()
		s.run("verify")
		acme.check()
		resting.check()
		s.kill(sigKill)
	})
}

// siteWriter adds one site after the other for an organisation, and knows which were acknowledged.
type siteWriter struct {
	*service
	user, password string
	first          int // number of its first site
	acknowledged   []client.SiteID
}

func (w *siteWriter) client() *client.Client {
	c := client.New("http://"+w.listen, w.user, w.password)
	c.HTTP.Timeout = time.Minute
	return c
}

// write adds sites until the context ends. What was refused is sent again as long as it takes.
func (w *siteWriter) write(ctx context.Context) {
	c := w.client()
	for n := w.first; ctx.Err() == nil; n++ {
		in := client.SiteRequest{MPAN: mpanOf(n), Postcode: "SW1A 1AA", StreetAddress: fmt.Sprintf("%d Road", n)}
		for w.Context().Err() == nil {
			made, err := c.CreateSite(context.WithoutCancel(ctx), in)
			if err == nil {
				w.acknowledged = append(w.acknowledged, made.ID)
				break
			}

			// It was made by a request of which the service died before it answered.
			if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusConflict && strings.Contains(refused.Detail, "exists already") {
				break
			} else if ok && refused.Status < 500 && refused.Status != http.StatusConflict {
				w.Errorf("%s: %v", w.user, err)
				return
			}
		}
	}
}

// check compares what is there with what was acknowledged.
func (w *siteWriter) check() {
	w.Helper()
	there, listed := map[client.SiteID]bool{}, 0
	for more := true; more; {
		const limit = 5000
		page, err := w.client().Sites(w.Context(), "", "", client.Page{Limit: limit, Offset: listed})
		if err != nil {
			w.Fatal(err)
		}

		for _, site := range page.Sites {
			there[site.ID] = true
		}
		listed += len(page.Sites)
		more = len(page.Sites) == limit
	}

	lost := slices.DeleteFunc(slices.Clone(w.acknowledged), func(id client.SiteID) bool { return there[id] })
	if len(lost) > 0 || len(there) != listed || len(w.acknowledged) == 0 {
		w.Errorf("%s: %d sites were acknowledged, %d are there, %d lost", w.user, len(w.acknowledged), listed, len(lost))
	}
	w.Logf("%s: %d sites acknowledged, %d there", w.user, len(w.acknowledged), listed)
}

// mpanOf is a metering point's number with its check digit.
func mpanOf(n int) string {
	core, sum := fmt.Sprintf("20%010d", n), 0
	for i, prime := range []int{3, 5, 7, 13, 17, 19, 23, 29, 31, 37, 41, 43} {
		sum += int(core[i]-'0') * prime
	}
	return fmt.Sprintf("%s%d", core, sum%11%10)
}
