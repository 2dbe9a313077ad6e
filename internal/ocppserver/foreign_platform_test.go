package ocppserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lorenzodonini/ocpp-go/ocpp1.6/core"

	"flexd/internal/ocppserver"
)

// nodePlatform is a central system by a library of Node's, in a process of its own
// (test/foreign/platform.mjs).
type nodePlatform struct {
	*testing.T
	url string
	in  io.Writer
	did chan string

	mu      sync.Mutex
	records []string
}

func startPlatform(t *testing.T, dir string) *nodePlatform {
	t.Helper()
	cmd := exec.Command("node", "platform.mjs")
	cmd.Dir, cmd.Stderr = dir, t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	p := &nodePlatform{T: t, in: in, did: make(chan string, 1)}
	read := make(chan struct{})
	t.Cleanup(func() {
		in.Close()
		<-read
		_ = cmd.Wait() // how it ends says nothing of the bridge
	})

	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.line(lines.Bytes())
		}
	}()
	p.url = "ws://127.0.0.1:" + p.await("its port")

	return p
}

func (p *nodePlatform) line(b []byte) {
	var l struct {
		Port                  int
		Record, Invalid, Done string
	}
	if err := json.Unmarshal(b, &l); err != nil {
		p.Errorf("the platform said %s", b)
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case l.Invalid != "":
		p.Errorf("the platform's library refuses: %s", l.Invalid)
	case l.Record != "":
		p.records = append(p.records, l.Record)
	case l.Port != 0:
		p.did <- fmt.Sprint(l.Port)
	default:
		p.did <- l.Done
	}
}

func (p *nodePlatform) await(what string) string {
	p.Helper()
	select {
	case s := <-p.did:
		return s
	case <-time.After(patience):
		p.Fatalf("%s did not come", what)
		return ""
	}
}

// set has it be down or up.
func (p *nodePlatform) set(word string) {
	p.Helper()
	fmt.Fprintln(p.in, word)
	p.await(word)
}

// billed is what it bills by, each once: what was sent again because its answer was lost is
// the same.
func (p *nodePlatform) billed() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.records {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// session is a charge of an hour; breaks is called at each quarter of it.
func (f *node) session(breaks func(step int)) {
	f.Helper()
	f.wh = 100_000

	if f.isStation() {
		f.call("BootNotification", map[string]any{"reason": "PowerUp", "chargingStation": map[string]any{"vendorName": "Library", "model": "Nobody"}})
		f.tx, f.state = "5f2c1d7e-0000-4000-8000-0123456789ab", "Charging"
		f.event("Started", evening)
	} else {
		f.call("BootNotification", map[string]any{"chargePointVendor": "Library", "chargePointModel": "Nobody"})
		f.say(core.ChargePointStatusPreparing)

		var a struct {
			Tx float64 `json:"transactionId"`
		}
		b := f.call("StartTransaction", map[string]any{"connectorId": 1, "idTag": "tag", "meterStart": math.Round(f.wh), "timestamp": stampOf(evening)})
		f.must(json.Unmarshal(b, &a))
		f.tx = a.Tx
	}

	for step := range 4 {
		breaks(step)
		f.wh += 1000
		f.meter(stepTime(step + 1))
	}

	if f.isStation() {
		f.event("Ended", stepTime(5))
		return
	}
	f.call("StopTransaction", map[string]any{"transactionId": f.tx, "meterStop": math.Round(f.wh), "timestamp": stampOf(stepTime(5)), "reason": "EVDisconnected"})
	f.say(core.ChargePointStatusAvailable)
}

// TestForeign_NodePlatform: charge points of other libraries on a platform of another one are
// billed the same through the bridge as without it, also when the platform is away in the
// middle; and no message that the bridge passes on is one that the platform's library refuses.
func TestForeign_NodePlatform(t *testing.T) {
	dir := nodePackages(t)
	for _, x := range nodeLibraries {
		t.Run(x.library+" "+x.protocol, func(t *testing.T) {
			direct := startPlatform(t, dir)
			alone := &bench{T: t, url: direct.url, began: time.Now()}
			alone.ahead.Store(evening.UnixMicro())
			startNode(alone, dir, x.library, x.protocol).session(func(int) {})
			want := direct.billed()

			for end := time.Now().Add(time.Minute); len(want) < 6 && time.Now().Before(end); want = direct.billed() {
				time.Sleep(10 * time.Millisecond) // the platform's program prints what it received a little later
			}
			if len(want) != 6 {
				t.Fatalf("without the bridge it is billed by %q", want)
			}

			p := startPlatform(t, dir)
			s := open(t, ocppserver.Settings{Upstream: p.url, Timing: quick})
			startNode(s, dir, x.library, x.protocol).session(func(step int) {
				switch step {
				case 1:
					p.set("down")
				case 3:
					p.set("up")
				}
			})

			s.eventually("the platform has all", func() bool { return len(p.billed()) >= len(want) })
			if got := p.billed(); !slices.Equal(got, want) {
				t.Errorf("it is billed by\n%s\nand without the bridge by\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}
