package ocppserver_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/ocppserver"
)

// named is a bench with a chargers' file, in which the charger's platform is written.
type named struct {
	*bench
	path, line string
	c          *sim
	office     string
}

func openNamed(t *testing.T) *named {
	const password = "a password of some length"
	line, err := ocppserver.HashPassword("CP1", password)
	if err != nil {
		t.Fatal(err)
	}

	n := &named{path: t.TempDir() + "/chargers.txt", line: line}
	if err := os.WriteFile(n.path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	chargers, err := ocppserver.ReadChargers(n.path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	n.bench = open(t, ocppserver.Settings{})
	n.halt()
	l := n.listen()
	n.office = "http://" + l.Addr().String()
	n.bridge(ocppserver.Settings{Chargers: chargers, Office: l, OfficeToken: officeToken})
	n.c = newSim(t, n.url, "CP1", n.now)
	n.c.password = password
	n.c.boot()

	return n
}

// name writes what a line goes on with, as an operator does, and lets the bridge see it.
func (n *named) name(options string) {
	n.must(os.WriteFile(n.path, []byte(n.line+" "+options+"\n"), 0o600))
	n.tick(5 * time.Second)
	n.c.must("Heartbeat", `{}`)
}

func (n *named) authorize(tag string) string {
	return string(n.c.must("Authorize", fmt.Sprintf(`{"idTag":%q}`, tag)))
}

// state is what the office says of the charger.
func (n *named) state() string {
	status, body := fetch(n.bench, http.MethodGet, n.office+"/chargers/CP1", "", officeToken)
	if status != http.StatusOK {
		n.Errorf("the charger's state was answered %d %s", status, body)
	}
	return body
}

// TestPassThrough_NamedAgain: a platform that is named, moves or is taken away while its charger is
// connected is followed without the charger's connection being lost. It is introduced, bills
// what it began, and bounds nothing once it is gone.
func TestPassThrough_NamedAgain(t *testing.T) {
	n := openNamed(t)
	first, second := newPlatform(t), newPlatform(t)
	if a := n.authorize("stranger"); !strings.Contains(a, "Accepted") {
		t.Fatalf("without a platform a tag was answered %s", a)
	}
	if b := n.state(); strings.Contains(b, "platform") || !strings.Contains(b, `"connected":true`) {
		t.Errorf("without a platform the state is %s", b)
	}

	n.name("upstream=" + first.url())
	n.eventually("the first is introduced", first.booted)
	if a := n.authorize("stranger"); !strings.Contains(a, "Invalid") {
		t.Errorf("the first platform does not know the tag, and it was answered %s", a)
	}

	first.setDown(true)
	n.eventually("it is shown as away", func() bool {
		return strings.Contains(n.state(), `"connected":false,"waiting"`)
	})
	tx := n.c.start(1000)
	n.name("upstream=" + second.url())
	n.eventually("what waited is with the second", func() bool {
		return second.booted() && second.has("StartTransaction")
	})

	n.name("")
	n.c.stop(tx, 3000, "Local")
	n.eventually("the second has the end", func() bool { return second.has("StopTransaction") })

	n.eventually("the second is left", func() bool {
		n.c.must("Heartbeat", `{}`)
		return !second.connected() && !strings.Contains(n.state(), "platform")
	})
	if a := n.authorize("stranger"); !strings.Contains(a, "Accepted") {
		t.Errorf("without a platform again a tag was answered %s", a)
	}
	if len(first.recorded()) > 0 {
		t.Errorf("the first bills by %q", first.recorded())
	}
}

func (p *platform) booted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.boots > 0
}

// has reports whether a platform bills by a message of the action.
func (p *platform) has(action string) bool {
	return slices.ContainsFunc(p.recorded(), func(r string) bool { return strings.HasPrefix(r, action+" ") })
}
