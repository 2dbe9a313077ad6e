package ha

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// fault breaks something and returns how to mend it, with the services that cannot work before.
type fault struct {
	name  string
	hold  time.Duration // mended after that; 0: once the service is back
	begin func(c *cluster, by *rand.Rand) (what string, mend func(), without []*machine)
}

var faults = []fault{
	{"the primary's machine is lost", 0, func(c *cluster, _ *rand.Rand) (string, func(), []*machine) {
		return lose(c.primary())
	}},
}

// lose kills all that runs on a machine.
func lose(m *machine) (string, func(), []*machine) {
	m.kill()
	return m.name, m.start, nil
}

// Limits of what a fault may do.
const (
	backMax   = 10 * time.Second // from the database's first write to each flexd's
	answerIn  = 8 * time.Second  // any answer: 5 s until a hang is noticed, and a busy machine
	outageMax = 3 * time.Minute  // of the database, however busy the machine
	settleMax = 4 * time.Minute  // until the deployment is whole again
)

// count is how many faults there are.
func count() int {
	if os.Getenv("FLEXD_LONG") != "" {
		return 50
	}
	return 6
}

// TestFaults breaks one part after the other under load. Nothing acknowledged is lost, nothing
// older stands after newer, and flexd works again soon after PostgreSQL does, by itself.
func TestFaults(t *testing.T) {
	need(t)
	began := time.Now()
	c := newCluster(t, settings{})
	t.Logf("up within %v; seed %d (FLEXD_HA_SEED)", time.Since(began).Round(time.Second), seedOf(t))
	l := c.newLoad(6)
	by := rand.New(rand.NewPCG(seedOf(t), 0))
	for i := range count() {
		f := faults[by.IntN(len(faults))]
		if i < len(faults) {
			f = faults[i]
		}
		l.inject(f, by)
		if t.Failed() {
			break
		}
	}
	l.stop()
	l.judge()
}

// inject begins a fault, waits until the service is back, ends it, and waits until the
// deployment is whole.
func (l *load) inject(f fault, by *rand.Rand) {
	l.Helper()
	acked, calls, ends := l.acknowledged(), l.callsSoFar(), l.endings()
	at := time.Now()
	what, mend, without := f.begin(l.cluster, by)
	working := func() string {
		for i, m := range l.services {
			if !slices.Contains(without, m) && !l.served[i].succeededSince(at.Add(max(f.hold, 3*time.Second))) {
				return m.name + " does not work"
			}
		}
		return ""
	}
	l.until("service after "+f.name, f.hold+outageMax, working)
	mended := time.Now()
	mend()
	l.until("a whole deployment after "+f.name, settleMax, l.unhealthy)
	whole := time.Since(mended)

	again, still := l.written.back(at)
	line := fmt.Sprintf("%s (%s): the database stood still for %.1f s", f.name, what, still.Seconds())
	for i, m := range l.services {
		from := again
		if slices.Contains(without, m) && mended.After(again) {
			from = mended
		}
		back, stood := l.served[i].back(at)
		after := max(0, back.Sub(from))
		line += fmt.Sprintf("; %s for %.1f s, back %.1f s after", m.name, stood.Seconds(), after.Seconds())
		if after > backMax {
			l.Errorf("%s: %s is back %v after the database, want %v", f.name, m.name, after, backMax)
		}
	}
	l.Logf("%s; whole %.0f s after it was mended; %d acknowledged; %s", line, whole.Seconds(), l.acknowledged()-acked, summary(l.since(calls)))
	l.judgeCalls(f.name, l.since(calls))
	if n := l.endings(); n != ends {
		l.Errorf("%s: a program of flexd's machines ended by itself", f.name)
	}
}

func (l *load) callsSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

func (l *load) since(n int) []call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls[n:])
}

func (l *load) endings() (n int) {
	for _, m := range l.services {
		n += m.endings()
	}
	return n
}

// judgeCalls holds each answer against what is promised: at once, and 503 with Retry-After where
// the database is not there.
func (l *load) judgeCalls(during string, calls []call) {
	l.Helper()
	bad := 0
	for _, c := range calls {
		if c.excused || bad > 5 {
			continue
		}
		refused := c.status == http.StatusServiceUnavailable && c.retryAfter != ""
		if c.took > answerIn || c.status == 0 || c.status >= 500 && !refused {
			l.Errorf("%s: %s to %s: %d, Retry-After %q, after %v", during, c.what, c.to.name, c.status, c.retryAfter, c.took)
			bad++
		}
	}
}

// judge looks for what was acknowledged and is gone, and for what stands after something newer.
func (l *load) judge() {
	l.Helper()
	for _, lost := range l.lost() {
		l.Errorf("acknowledged and lost: %s", lost)
	}
	for _, c := range l.cars {
		if problem := l.unpushed(c); c.plugged && problem != "" {
			l.Errorf("%s: %s", c.external, problem)
		}
	}
	for _, o := range append(l.older, l.endpoint.older...) {
		l.Errorf("older after newer: %s", o)
	}
	if out := l.command(l.primary(), "verify"); !strings.Contains(string(out), "laws hold") {
		l.Errorf("verify: %s", out)
	}
	l.Logf("%d acknowledged writes, %d pushes", l.acked, l.endpoint.took)
}

// TestPlantedLoss has commits wait for no replica, and loses the primary while none hears it: the
// harness must find what is gone.
func TestPlantedLoss(t *testing.T) {
	need(t)
	c := newCluster(t, settings{lossy: true})
	l := c.newLoad(6)
	p := c.primary()
	for _, m := range c.databases {
		if m != p {
			if err := part(p, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	const more = 100
	acked := l.acknowledged()
	c.until("writes that no replica has", startMax, func() string {
		if n := l.acknowledged() - acked; n < more {
			return fmt.Sprintf("%d of %d", n, more)
		}
		return ""
	})
	at := time.Now()
	p.kill()
	c.until("another primary", outageMax, func() string {
		if l.served[0].succeededSince(at.Add(time.Second)) {
			return ""
		}
		return "none"
	})
	l.stop()
	lost := l.lost()
	if len(lost) == 0 {
		t.Error("writes were acknowledged that no other machine had, the one that had them is gone, and the harness says that nothing is lost")
	}
	t.Logf("found: %s", strings.Join(lost, "; "))
}
