package crash

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/store/storetest"
)

// former is the commit of the release before. Its processes go on working beside those of this
// one until they are replaced.
const former = "e6536f0"

// formerBinary builds the release before from the repository's own history.
func formerBinary(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatalf("the repository's history is needed: %v", err)
	}

	dir := t.TempDir()
	archive := filepath.Join(dir, "former.tar")
	source := filepath.Join(dir, "source")
	path := filepath.Join(dir, "flexd-former")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}

	run := func(in, name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run(strings.TrimSpace(string(root)), "git", "archive", "--output", archive, former)
	run(source, "tar", "-xf", archive)
	run(source, "go", "build", "-o", path, "./cmd/flexd")
	return path
}

// A process of the release before serves on while the schema is migrated under it, and beside a
// process of this one. Nothing that either acknowledged is lost, no push comes twice or after a
// newer one, and what the former left in its own way is taken over. The campaigns run it; it
// builds the release before, which takes minutes.
func TestRollingUpgrade(t *testing.T) {
	if os.Getenv("FLEXD_LONG") == "" {
		t.Skip("builds the release before: make long, or FLEXD_LONG=1")
	}
	t.Parallel()
	next, err := binary()
	if err != nil {
		t.Fatal(err)
	}

	url := storetest.Postgres(t)
	for _, statement := range []string{"DROP SCHEMA public CASCADE", "CREATE SCHEMA public"} { // the former makes its own
		if err := storetest.Exec(t, url, statement); err != nil {
			t.Fatal(err)
		}
	}

	a, e := newServiceOf(t, url, formerBinary(t)), newEndpoint(t)
	cars := a.chargers(4, e)
	for _, c := range cars {
		if err := a.client(4).PlugIn(t.Context(), c.asset, client.PlugInEventRequest{}); err != nil {
			t.Fatal(err)
		}
		c.plugged = true
	}
	asset, err := a.client(4).Asset(t.Context(), cars[0].asset)
	if err != nil {
		t.Fatal(err)
	}

	b := a.second()
	b.path = next
	b.run("migrate")
	b.start()
	both := []*service{a, b}
	ctx, stop := context.WithCancel(t.Context())
	var acked atomic.Int64
	var wg sync.WaitGroup
	for i, c := range cars {
		wg.Go(func() { both[i%2].use(ctx, c, asset.SiteID, &acked) })
	}

	for acked.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	stop()
	wg.Wait()

	// A session that the former ends is not queued for settlement by it.
	gone := cars[0]
	if err := a.client(4).PlugOut(t.Context(), gone.asset); err != nil {
		t.Fatal(err)
	}
	gone.plugged = false
	a.kill(sigTerm)

	for _, l := range b.lost(cars, e) {
		t.Errorf("acknowledged and lost: %s", l)
	}
	if twice, older := e.faults(); twice > 0 || older > 0 {
		t.Errorf("%d pushes came twice and %d after a newer one", twice, older)
	}

	// Its successor takes that over when it starts.
	c := a.second()
	c.path = next
	c.start()
	var out []byte

	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		cmd := exec.Command(next, "verify", "--database", c.database, "--key-file", c.keys, "--environment", "sandbox")
		if out, err = cmd.CombinedOutput(); err == nil {
			break
		}
	}
	if err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}

	t.Logf("%d acknowledged requests by both releases; %s", acked.Load(), strings.TrimSpace(string(out)))
	b.kill(sigTerm)
	c.kill(sigTerm)
}
