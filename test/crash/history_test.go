package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"flexd/client"
	"flexd/internal/store/storetest"
)

// A history is what clients asked of the service at once, what it answered, and when each call
// began and ended. It is linearizable if some order of the calls, in which none comes before one
// that had ended when it began, gives the same answers by one client at a time (Herlihy and Wing
// 1990, "Linearizability: a correctness condition for concurrent objects"). The search for
// such an order is porcupine's; it knows nothing of flexd but the two models below.

// call is one request of a history.
type call struct {
	object string
	verb   verb
	value  int64 // what is written
}

type verb int

const (
	read verb = iota
	write
	enrol
	unenrol
)

// answer is what came back. A call without one may have been done at any time since, or never.
type answer struct {
	known bool
	value int64 // what was read; of enrol and unenrol 1 if it changed something, else 0
}

// register is an object of which the value written last is read. The state is that value.
var register = porcupine.Model{
	Partition: byObject,
	Init:      func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		in, out := input.(call), output.(answer)
		if in.verb == write {
			return true, in.value
		}

		return out.value == state.(int64), state
	},
	DescribeOperation: describe,
}

// membership is a site that is in a proposition, 1, or is not, 0. Whoever enrols it learns
// whether it was.
var membership = porcupine.Model{
	Partition: byObject,
	Init:      func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		in, out := input.(call), output.(answer)
		after := int64(0)
		if in.verb == enrol {
			after = 1
		}
		changed := int64(0)
		if after != state.(int64) {
			changed = 1
		}

		return !out.known || out.value == changed, after
	},
	DescribeOperation: describe,
}

func byObject(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	by := map[string][]porcupine.Operation{}
	for _, o := range history {
		name := o.Input.(call).object
		by[name] = append(by[name], o)
	}
	for _, part := range by {
		parts = append(parts, part)
	}

	return parts
}

func describe(input, output any) string {
	return fmt.Sprintf("%+v gives %+v", input, output)
}

// recorder keeps the history of a test.
type recorder struct {
	mu      sync.Mutex
	began   time.Time
	history []porcupine.Operation
}

// do makes one call and keeps it with its answer.
func (r *recorder) do(worker int, c call, ask func() (int64, error)) error {
	from := time.Since(r.began)
	value, err := ask()
	until := int64(time.Since(r.began))

	status := client.StatusOf(err)
	once := c.verb == enrol || c.verb == unenrol
	switch {
	case err == nil:
	case status >= 400 && status < 500 && status != http.StatusConflict: // its first try may be under way
		return fmt.Errorf("%+v: %w", c, err)
	case c.verb == read || once && errors.Is(err, syscall.ECONNREFUSED):
		return nil // it changed nothing and says nothing
	default:
		until = math.MaxInt64 // it may be done yet
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{
		ClientId: worker, Input: c, Call: int64(from), Output: answer{known: err == nil, value: value}, Return: until,
	})

	return nil
}

// split returns the calls of registers, without the unanswered writes of a value that nobody
// read, and those of memberships. Such a write can stand at the end of every order, so that
// leaving it out changes no verdict, and the search is shorter by a factor of two for each.
func (r *recorder) split() (registers, memberships []porcupine.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wasRead := map[call]bool{}
	for _, o := range r.history {
		if in := o.Input.(call); in.verb == read {
			wasRead[call{in.object, write, o.Output.(answer).value}] = true
		}
	}

	for _, o := range r.history {
		in, out := o.Input.(call), o.Output.(answer)
		switch {
		case in.verb == enrol || in.verb == unenrol:
			memberships = append(memberships, o)
		case out.known || wasRead[in]:
			registers = append(registers, o)
		}
	}

	return registers, memberships
}

// objects are what the workers of a history use.
type objects struct {
	assets []client.AssetID
	site   client.SiteID
	next   atomic.Int64 // the value that is written next; none is written twice
}

// powerMax bounds the powers that are written, in steps of a watt above 1 kW.
const powerMax = 300_000

// caller is a client that asks again under the same idempotency key, and one that does not, nor
// has its transport do so.
type caller struct {
	patient, once *client.Client
}

func (s *service) caller(address string) caller {
	c := caller{client.New("http://"+address, "acme", s.password), client.New("http://"+address, "acme", s.password)}
	c.patient.Retries, c.once.Retries = 2, 0
	c.patient.HTTP.Timeout = time.Minute
	c.once.HTTP = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

	return c
}

// step makes one call that is drawn at random.
func (o *objects) step(ctx context.Context, r *recorder, worker int, c caller) error {
	api := c.patient
	id := o.assets[rand.IntN(len(o.assets))]

	switch rand.IntN(8) {
	case 0:
		v := 1000 + o.next.Add(1)%powerMax

		return r.do(worker, call{"power of " + id.String(), write, v}, func() (int64, error) {
			kw := float64(v) / 1000
			_, err := api.UpdateAsset(ctx, id, client.AssetUpdateRequest{Properties: &client.AssetProperties{PowerKW: &kw}})
			return 0, err
		})
	case 1, 2:
		return r.do(worker, call{object: "power of " + id.String()}, func() (int64, error) {
			a, err := api.Asset(ctx, id)
			if err != nil || a.Properties == nil || a.Properties.PowerKW == nil {
				return 0, err
			}

			return int64(math.Round(*a.Properties.PowerKW * 1000)), nil
		})
	case 3:
		v := o.next.Add(1)
		return r.do(worker, call{"intent of " + id.String(), write, v}, func() (int64, error) {
			in := client.Intent{EnergyRequiredKWh: float64(v) / 1000, ReadyBy: client.At(r.began), ChargingMode: client.ChargingMinimise}
			return 0, api.SetIntent(ctx, id, client.IntentEventRequest{Intent: in})
		})
	case 4:
		return r.do(worker, call{object: "intent of " + id.String()}, func() (int64, error) {
			in, err := api.Intent(ctx, id)
			if client.StatusOf(err) == http.StatusNotFound {
				return 0, nil
			}

			return int64(math.Round(in.Intent.EnergyRequiredKWh * 1000)), err
		})
	case 5:
		v := o.next.Add(1)

		return r.do(worker, call{"cap", write, v}, func() (int64, error) {
			kw := float64(v)
			_, err := api.SetCaps(ctx, client.Caps{Fleet: &client.Cap{CapKW: &kw}})

			return 0, err
		})
	case 6:
		return r.do(worker, call{object: "cap"}, func() (int64, error) {
			c, err := api.Caps(ctx)
			if client.StatusOf(err) == http.StatusNotFound {
				return 0, nil
			}
			if err != nil || c.Fleet == nil || c.Fleet.CapKW == nil {
				return 0, err
			}

			return int64(*c.Fleet.CapKW), nil
		})
	}

	return o.join(ctx, r, worker, c.once)
}

// join has the site enrolled or taken out of the proposition. It is asked once: the answer to a
// repeated request says how things stand, and not what its first run has changed.
func (o *objects) join(ctx context.Context, r *recorder, worker int, once *client.Client) error {
	if rand.IntN(2) == 0 {
		return r.do(worker, call{object: "membership", verb: enrol}, func() (int64, error) {
			got, err := once.Enrol(ctx, o.site, client.EnrolRequest{Proposition: client.PropositionLimitedPause, OverrideWithdrawal: true})
			return changed(got.Status, "enrolled"), err
		})
	}

	return r.do(worker, call{object: "membership", verb: unenrol}, func() (int64, error) {
		got, err := once.Unenrol(ctx, o.site, client.UnenrolRequest{Proposition: client.PropositionLimitedPause})
		return changed(got.Status, "unenrolled"), err
	})
}

func changed(status, word string) int64 {
	if status == word {
		return 1
	}

	return 0
}

// historyWorkers is how many clients ask at once.
const historyWorkers = 8

// play has n calls made by several clients at the addresses, while faults happen, and returns
// what was asked and answered.
func (o *objects) play(s *service, n int64, addresses []string, fault func(again func() bool)) *recorder {
	r := &recorder{began: time.Now()}
	ctx, stop := context.WithCancel(s.Context())
	var made atomic.Int64
	var workers, faults sync.WaitGroup
	for w := range historyWorkers {
		clients := make([]caller, len(addresses))
		for i, address := range addresses {
			clients[i] = s.caller(address)
		}

		workers.Go(func() {
			for made.Add(1) <= n {
				if err := o.step(ctx, r, w, clients[rand.IntN(len(clients))]); err != nil {
					s.Error(err)
				}
			}
		})
	}
	faults.Go(func() { fault(func() bool { return ctx.Err() == nil }) })

	workers.Wait()
	stop()
	faults.Wait()

	return r
}

// unexplained returns the objects whose calls no order explains.
func (r *recorder) unexplained(t *testing.T) (names []string) {
	registers, memberships := r.split()
	t.Logf("%d calls recorded, %d of registers and %d of enrolment judged", len(r.history), len(registers), len(memberships))

	for _, part := range byObject(registers) {
		if !porcupine.CheckOperations(register, part) {
			names = append(names, part[0].Input.(call).object)
		}
	}
	if !porcupine.CheckOperations(membership, memberships) {
		names = append(names, "membership")
	}

	return names
}

// historyCalls is how long a history is.
func historyCalls() int64 {
	if os.Getenv("FLEXD_LONG") != "" {
		return 100_000
	}

	return 800
}

func (s *service) objects(e *endpoint) *objects {
	o := &objects{}
	for _, c := range s.chargers(4, e) {
		o.assets = append(o.assets, c.asset)
	}
	a, err := s.client(4).Asset(s.Context(), o.assets[0])
	if err != nil {
		s.Fatal(err)
	}
	o.site = a.SiteID

	return o
}

// Two processes on one PostgreSQL, of which one and then the other is killed or stands still,
// answer as one that does one thing at a time.
func TestHistory_TwoProcesses(t *testing.T) {
	t.Parallel()
	a := newService(t, storetest.Postgres(t))
	o := a.objects(newEndpoint(t))
	b := a.second()
	b.start()

	var kills, pauses int
	r := o.play(a, historyCalls(), []string{a.listen, b.listen}, func(again func() bool) {
		for both := []*service{a, b}; again(); slices.Reverse(both) {
			time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
			if rand.IntN(2) == 0 {
				both[0].kill(sigKill)
				both[0].start()
				kills++
				continue
			}

			both[0].cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
			both[0].cmd.Process.Signal(syscall.SIGCONT)
			pauses++
		}
	})
	for _, name := range r.unexplained(t) {
		t.Errorf("no order of the calls explains what was read of the %s", name)
	}
	t.Logf("%d kills, %d pauses", kills, pauses)
	a.kill(sigTerm)
	b.kill(sigTerm)
}

// One process on SQLite, killed over and over.
func TestHistory_SQLite(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	o := s.objects(newEndpoint(t))
	kills := 0
	r := o.play(s, historyCalls(), []string{s.listen}, func(again func() bool) {
		for ; again(); kills++ {
			time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
			s.kill(sigKill)
			s.start()
		}
	})

	for _, name := range r.unexplained(t) {
		t.Errorf("no order of the calls explains what was read of the %s", name)
	}
	t.Logf("%d kills", kills)
	s.kill(sigTerm)
}

// TestHistory_PlantedFaults has a proxy before the service answer with what it read before: the
// search must say so of the intents, which it does it to, and of nothing else.
func TestHistory_PlantedFaults(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	o := s.objects(newEndpoint(t))
	defer s.kill(sigTerm)
	to, err := url.Parse("http://" + s.listen)
	if err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	first := map[string][]byte{} // the first answer for each intent, which comes again and again
	stale := httputil.NewSingleHostReverseProxy(to)
	stale.ModifyResponse = func(resp *http.Response) error {
		path := resp.Request.URL.Path
		if resp.Request.Method != http.MethodGet || resp.StatusCode != http.StatusOK || !strings.HasSuffix(path, "/intent") {
			return nil
		}

		body, err := io.ReadAll(resp.Body)
		mu.Lock()
		defer mu.Unlock()
		if first[path] == nil {
			first[path] = body
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(first[path])), int64(len(first[path]))
		resp.Header.Set("Content-Length", strconv.Itoa(len(first[path])))
		return err
	}

	proxy := httptest.NewServer(stale)
	defer proxy.Close()

	r := o.play(s, 400, []string{strings.TrimPrefix(proxy.URL, "http://")}, func(func() bool) {})
	found := r.unexplained(t)
	if len(found) == 0 {
		t.Error("intents were read as they had been, and the search found an order for that")
	}
	for _, name := range found {
		if !strings.HasPrefix(name, "intent of ") {
			t.Errorf("the %s was read as it was, and the search found no order", name)
		}
	}
}
