package ha

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Limits of what a fault may do.
const (
	backMax       = 10 * time.Second // from the database's first write to each flexd's
	answerIn      = 8 * time.Second  // any answer: 5 s until a hang is noticed, and a busy machine
	outageMax     = 3 * time.Minute  // of the database, however busy the machine
	settleMax     = 4 * time.Minute  // until the deployment is whole again
	operatorAfter = time.Minute      // until an operator helps a Patroni that names no synchronous replica
)

// drawn returns the faults of a run: each kind once in the order of chance, and more by chance, 50
// in all; or in the short form one of each group. FLEXD_HA_FAULTS is a pattern of names, each of
// which is then meant.
func drawn(t *testing.T, by *rand.Rand) (drawn []fault) {
	if text := os.Getenv("FLEXD_HA_FAULTS"); text != "" {
		pattern, err := regexp.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(faults(), func(f fault) bool { return !pattern.MatchString(f.name) })
	}

	all := faults()
	by.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if os.Getenv("FLEXD_LONG") != "" {
		for i := len(all); i < 50; i++ {
			all = append(all, all[by.IntN(len(all))])
		}
		return all
	}

	met := map[string]bool{}
	return slices.DeleteFunc(all, func(f fault) bool {
		again := met[f.group]
		met[f.group] = true
		return again
	})
}

// timeOf is how long a run begins new faults: FLEXD_HA_FOR, or as long as there are any.
func timeOf(t *testing.T) time.Duration {
	text := os.Getenv("FLEXD_HA_FOR")
	if text == "" {
		return math.MaxInt64
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
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
	until := timeOf(t)

	for i, f := range drawn(t, by) {
		if i > 0 && time.Since(began) > until {
			t.Logf("%d faults in %v; no more are begun", i, until)
			break
		}
		l.inject(i+1, f)
		if t.Failed() {
			break
		}
	}
	l.stop()
	l.judge()
}

// inject begins a fault, waits until the service is back, ends it, and waits until the
// deployment is whole.
func (l *load) inject(n int, f fault) {
	l.Helper()
	acked, calls, ends := l.acknowledged(), l.callsSoFar(), l.endings()
	at := time.Now()
	b := f.begin(l.cluster)
	l.until("service after "+f.name, f.hold+outageMax, func() string {
		return l.idle(at.Add(max(f.hold, heldLeast)), b.without)
	})

	mended := time.Now()
	b.mend()
	forgotten := false
	l.until("a whole deployment after "+f.name, settleMax, func() string {
		w := l.unhealthy()
		if w == "" {
			return l.idle(mended.Add(time.Second), nil)
		}

		if !forgotten && time.Since(mended) > operatorAfter && l.withoutSynchronous() {
			forgotten = true
			l.forgetSynchronous()
		}
		return w
	})
	whole := time.Since(mended)

	again, still := l.written.back(at)
	line := fmt.Sprintf("%d. %s (%s): the database stood still for %.1f s", n, f.name, b.what, still.Seconds())

	for i, m := range l.services {
		from := again
		if slices.Contains(b.without, m) && mended.After(again) {
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
	l.judgeCalls(f.name, l.since(calls), b.mute)
	if n := l.endings(); n != ends && len(b.without) == 0 {
		l.Errorf("%s: a program of flexd's machines ended by itself", f.name)
	}
}

// heldLeast is how long a fault lasts at least, so that it is not over before it was met.
const heldLeast = 3 * time.Second

// idle names a flexd that has written nothing since an instant, but for those that cannot.
func (l *load) idle(since time.Time, without []*machine) string {
	for i, m := range l.services {
		if !slices.Contains(without, m) && !l.served[i].succeededSince(since) {
			return m.name + " writes nothing"
		}
	}
	return ""
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

// judgeCalls holds each answer of all but the mute machine against what is promised: at once, and
// 503 with Retry-After where the database is not there.
func (l *load) judgeCalls(during string, calls []call, mute *machine) {
	l.Helper()
	bad := 0
	for _, c := range calls {
		if c.to == mute || bad > 5 {
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
