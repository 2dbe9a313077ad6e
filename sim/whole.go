package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"flexd/client"
	"flexd/internal/app"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/keyring"
)

// Outcome is what came of a history.
type Outcome struct {
	Broken []string `json:"broken"` // as "law: what breaks it"
	// of what each car drew and each home was credited
	Hash string `json:"hash"`
	// what came of heat pumps ("rooms") and tanks ("water"); none without them
	Heat map[string]*Heat `json:"heat,omitempty"`
}

// whole is a flexd that a history is played on. Its clock does not move between the instants of the history,
// and no job runs but in its turn: a history has one outcome.
type whole struct {
	settings app.Settings
	app      *app.App
	client   *client.Client
	endpoint *Endpoint
	org      flex.OrgID
	now      atomic.Pointer[time.Time]
	handler  atomic.Pointer[http.Handler]
	down     atomic.Bool
	deaf     atomic.Bool // chargers keep to what they were sent
	pushes   arrivals
	kill     *kill // to come, or nil
	since    int64 // bytes of the journal when the instant began
	homes    map[string]*household
	heaters  map[string]*heater // by their external ids
	weather  *weather
	heat     heatSums
	began    time.Time
	noonHeld time.Time // the last noon for which the laws were held, or when the history began
	unheated bool      // the heaters were removed
	supplied bool      // whether any home has a main fuse or a battery
	cap      fleetCap
	caps     []flex.Span // when there is one
	happened time.Time   // when something last happened
	reached  time.Time   // when the endpoint was last out of reach
	// run at noon of each day before the laws are held, to plant a fault; may be nil
	noon   func()
	broken []string
	// given by the grid's side
	instructions []instructed
	// what may keep a car from what it was sent
	unsteady []Happening
	// kWh that chargers and heaters drew, by half-hours
	metered map[client.AssetID]map[flex.Period]float64
	drew    []string // a line for each stay that ended, in their order
}

// moment is an instant of a history and what is done then.
type moment struct {
	at    time.Time
	do    func(context.Context) error
	looks bool // nothing is due because of it
}

// PlayHistory plays a history on a flexd of its own, over real sockets of this machine and with a database
// in a temporary folder that is removed. The error is one of playing: broken laws are in the outcome.
func PlayHistory(
	ctx context.Context,
	history []Happening,
) (Outcome, error) {
	return playHistory(ctx, history, nil)
}

// PlayHistoryAt is PlayHistory on the PostgreSQL database of the URL, which PrepareDatabase has made ready and nothing
// else was done to. A kill comes there before anything of its instant is written.
func PlayHistoryAt(
	ctx context.Context,
	url string,
	history []Happening,
) (Outcome, error) {
	var o Outcome
	if err := valid(history); err != nil {
		return o, err
	}

	forgets := func(h Happening) bool { return h.Forgets }
	if slices.ContainsFunc(history, forgets) {
		return o, flex.Fail(
			flex.Invalid,
			"a disk that forgets what was acknowledged is simulated on SQLite alone",
		)
	}

	return playOn(ctx, url, history, nil)
}

// playHistory is PlayHistory, with what is done to the database file at noon of each day.
func playHistory(
	ctx context.Context,
	history []Happening,
	noon func(file string),
) (Outcome, error) {
	var o Outcome
	if err := valid(history); err != nil {
		return o, err
	}

	dir, err := os.MkdirTemp("", "flexd-simulate-")
	if err != nil {
		return o, err
	}

	defer os.RemoveAll(dir)

	empty, err := emptyDatabase()
	if err != nil {
		return o, err
	}

	file := filepath.Join(dir, "flexd.db")
	if err := os.WriteFile(file, empty, 0o600); err != nil {
		return o, err
	}

	return playOn(ctx, onFile+file, history, noon)
}

// onFile begins the URL of a database that is a file.
const onFile = "sqlite:"

// valid is an error if a history cannot be played.
func valid(history []Happening) error {
	if len(history) == 0 {
		return flex.Fail(flex.Invalid, "the history is empty")
	}

	for _, h := range history {
		if err := h.valid(); err != nil {
			return err
		}
	}

	return apart(history)
}

// apart is an error if a stay ends before its car can be ready, or if two cars are at one charger.
func apart(history []Happening) error {
	stays := slices.DeleteFunc(slices.Clone(history), func(h Happening) bool { return h.Kind != Stay })
	slices.SortStableFunc(stays, func(a, b Happening) int {
		return a.From.Compare(b.From)
	})

	until := map[string]time.Time{}
	for _, h := range stays {
		name := fmt.Sprintf("charger %d of %s", h.Charger, h.Home)
		from := h.From.Format(time.RFC3339)
		if !h.ready().After(h.From) {
			return flex.Fail(
				flex.Invalid,
				"the stay at %s from %s lasts an hour or less: its car is to be ready an hour before it leaves",
				name,
				from,
			)
		}

		if !h.From.After(until[name]) {
			return flex.Fail(
				flex.Invalid,
				"a car comes to %s at %s, before the one that is there has left",
				name,
				from,
			)
		}

		until[name] = h.To
	}

	return nil
}

// playOn plays a history on a database without records.
func playOn(
	ctx context.Context,
	url string,
	history []Happening,
	noon func(file string),
) (Outcome, error) {
	w, err := newWhole(url, history)

	var o Outcome
	if err != nil {
		return o, err
	}

	if noon != nil {
		w.noon = func() { noon(w.file()) }
	}

	defer func() {
		if w.app != nil {
			w.app.Close()
		}
	}()

	return w.play(ctx, history)
}

// play plays the history between two servers of this machine: flexd, and the client's endpoint.
func (w *whole) play(
	ctx context.Context,
	history []Happening,
) (Outcome, error) {
	server, err := w.listen(func(out http.ResponseWriter, in *http.Request) {
		(*w.handler.Load()).ServeHTTP(out, in)
	})

	var o Outcome
	if err != nil {
		return o, err
	}

	defer server.Close()
	post, err := w.listen(w.receive)
	if err != nil {
		return o, err
	}

	defer post.Close()
	if err := w.prepare(
		ctx,
		history,
		"http://"+server.Addr,
		"http://"+post.Addr,
	); err != nil {
		return o, err
	}

	if err := w.live(ctx, history); err != nil {
		return o, fmt.Errorf("at %s: %w", w.time().Format(time.RFC3339), err)
	}

	return w.outcome(ctx)
}

func newWhole(url string, history []Happening) (*whole, error) {
	keys, err := keyring.NewRing([keyring.KeySize]byte{1})
	if err != nil {
		return nil, err
	}

	w := &whole{
		homes:   map[string]*household{},
		heaters: map[string]*heater{},
		weather: newWeather(&Climate{Mean: 8}, flex.Span{}),
		heat:    heatSums{},
		broken:  []string{},
		pushes: arrivals{
			newest: map[string]string{},
			first:  map[string]string{},
		},
		metered: map[client.AssetID]map[flex.Period]float64{},
	}

	first := slices.MinFunc(history, func(a, b Happening) int {
		return a.From.Compare(b.From)
	})

	start := flex.DayAt(first.From).Start()
	w.now.Store(&start)
	w.began, w.noonHeld = start, start
	w.settings = app.Settings{
		Database:              url,
		Keys:                  keys,
		Environment:           flex.Sandbox,
		AllowPrivateEndpoints: true,
		Disposable:            true,
		Now:                   w.time,
		Random:                rand.NewChaCha8([32]byte{}),
		Log:                   slog.New(slog.NewTextHandler(io.Discard, nil)),
	}

	return w, nil
}

// emptyDatabase returns the file of a database with all tables and no records. It is made once in a
// process: to make the tables takes longer than to play a small history on them.
var emptyDatabase = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "flexd-simulate-")
	if err != nil {
		return nil, err
	}

	defer os.RemoveAll(dir)

	file := filepath.Join(dir, "flexd.db")
	if err := PrepareDatabase(context.Background(), onFile+file); err != nil {
		return nil, err
	}

	return os.ReadFile(file)
})

// PrepareDatabase makes the tables that a history is played on, without records.
func PrepareDatabase(ctx context.Context, url string) error {
	keys, err := keyring.NewRing([keyring.KeySize]byte{1})
	if err != nil {
		return err
	}

	h, err := app.Open(ctx, app.Settings{
		Database:    url,
		Keys:        keys,
		Environment: flex.Sandbox,
		Disposable:  true,
		Now:         func() time.Time { return time.Unix(0, 0) },
		Log:         slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return err
	}

	return h.Close()
}

func (w *whole) time() time.Time { return *w.now.Load() }

// listen serves on a free port of the loopback; the server's address says which.
func (w *whole) listen(serve http.HandlerFunc) (*http.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	s := &http.Server{
		Handler:           serve,
		Addr:              l.Addr().String(),
		ReadHeaderTimeout: time.Minute,
	}

	go func() { _ = s.Serve(l) }() // it ends when the server is closed

	return s, nil
}

// open opens flexd on the database.
func (w *whole) open(ctx context.Context) error {
	var err error
	w.app, err = app.Open(ctx, w.settings)
	if err != nil {
		return err
	}

	w.app.Push.Jitter = func([16]byte, int) float64 {
		return 0.5
	} // when a retry comes is what a car has drawn meanwhile
	handler := w.app.Handler()
	w.handler.Store(&handler)

	return nil
}

// restart ends flexd and opens it again.
func (w *whole) restart(ctx context.Context) error {
	err := w.app.Close()
	w.app = nil
	if err != nil {
		return err
	}

	return w.open(ctx)
}

// prepare opens flexd and registers the homes of the history.
func (w *whole) prepare(
	ctx context.Context,
	history []Happening,
	server, post string,
) error {
	if err := w.open(ctx); err != nil {
		return err
	}

	org, password, err := w.app.Access.AddOrg(ctx, "Fleet", "fleet", "")
	if err != nil {
		return err
	}

	w.org, w.client = org.ID, client.New(server, "fleet", password.Reveal())
	made, err := w.client.SetEndpoint(
		ctx,
		client.EndpointRequest{
			URL:         post + "/{external_id}",
			Concurrency: 1, // how often each was tried when it was out of reach is what it waits
			// A part of a second's worth may be sent at an instant, and the clock stands still until all that is due was tried.
			Rate: delivery.RateMax,
		},
	)
	if err != nil {
		return err
	}

	w.endpoint = NewEndpoint(made.Secret)
	w.endpoint.Now = w.time
	w.endpoint.Received = w.pushes.taken
	w.endpoint.Others = w.receiveHeat

	return w.register(ctx, history)
}

// afterwards is how long a history continues after its last happening: until all is credited.
const afterwards = 36 * time.Hour

// live plays the history from one instant to the next.
func (w *whole) live(ctx context.Context, history []Happening) error {
	var moments []moment
	end := w.time()
	for _, h := range history {
		if !h.fixed() {
			moments = append(moments, w.moments(h)...)
		}
		if h.To.After(end) {
			end = h.To
		}
	}

	slices.SortStableFunc(moments, func(a, b moment) int {
		return a.at.Compare(b.at)
	})

	for len(moments) > 0 {
		n := 1
		for n < len(moments) && moments[n].at.Equal(moments[0].at) {
			n++
		}

		if err := w.instant(ctx, moments[:n]); err != nil {
			return err
		}

		moments = moments[n:]
	}

	if err := w.until(ctx, end); err != nil {
		return err
	}
	if err := w.removeHeaters(ctx); err != nil {
		return err
	}

	return w.until(ctx, end.Add(afterwards))
}

// instant lets time pass to the moments of one instant, and does them. What is due because of them is
// done once for all: fifty cars that come at one time are one round of the jobs and not fifty.
func (w *whole) instant(ctx context.Context, moments []moment) error {
	if err := w.until(ctx, moments[0].at); err != nil {
		return err
	}

	since, err := w.journal()
	if err != nil {
		return err
	}

	w.since, w.happened = since, w.time()
	due := false

	for _, m := range moments {
		if err := m.do(ctx); err != nil {
			return err
		}
		due = due || !m.looks
	}

	if !due {
		return nil
	}

	return w.runUntilIdle(ctx)
}

// moments are the instants at which something of the happening is done.
func (w *whole) moments(h Happening) []moment {
	place := w.homes[h.Home]

	switch h.Kind {
	case Outage:
		return w.outage(h)

	case Restart:
		return []moment{{at: h.From, do: w.restart}}

	case Kill:
		return []moment{w.dying(h)}

	case Change:
		return []moment{{
			at: h.From,
			do: func(ctx context.Context) error { return w.change(ctx, h, place) },
		}}

	case Boost:
		return []moment{{
			at: h.From,
			do: func(ctx context.Context) error { return w.boost(ctx, h, place) },
		}}

	case Cap:
		return []moment{
			{at: h.From, do: func(ctx context.Context) error { return w.capAt(ctx, h) }},
			{at: h.To, do: w.uncap},
		}

	case Instruct:
		return []moment{
			{at: h.From, do: func(ctx context.Context) error { return w.instruct(ctx, h) }},
			{at: h.To, do: func(context.Context) error { w.deaf.Store(false); return nil }},
		}

	case Late:
		return w.lateness(h, place)

	default:
		return w.stay(h, place)
	}
}

// outage are the instants at which the client's endpoint goes out of reach and is back.
func (w *whole) outage(h Happening) []moment {
	set := func(down bool) func(context.Context) error {
		return func(context.Context) error {
			w.down.Store(down)
			w.reached = w.time()
			return nil
		}
	}

	return []moment{
		{at: h.From, do: set(true)},
		{at: h.To, do: func(ctx context.Context) error {
			if h.Replays {
				w.pushes.replay()
			}
			return set(false)(ctx)
		}},
	}
}

// lateness are the instants from which a home's readings are kept back and at which they are sent.
func (w *whole) lateness(h Happening, place *household) []moment {
	return []moment{{
		at: h.From,
		do: func(context.Context) error { place.late++; return nil },
	}, {
		at: h.To,
		do: func(ctx context.Context) error { place.late--; return w.postKept(ctx, place) },
	}}
}

// stay are the instants of a car at its home: it comes, it is ready an hour before it goes, it goes.
func (w *whole) stay(h Happening, place *household) []moment {
	return []moment{{
		at: h.From,
		do: func(ctx context.Context) error { return w.arrive(ctx, h, place) },
	}, {
		at:    h.ready(),
		do:    func(context.Context) error { w.checkNeed(h, place); return nil },
		looks: true,
	}, {
		at: h.To,
		do: func(ctx context.Context) error { return w.leave(ctx, h, place) },
	}}
}

// soon is how long after something happened every minute is looked at: in it flexd sends what it could
// not send at once, and takes back what was not accepted.
const soon = 5 * time.Minute

// until lets time pass to the instant: by minutes soon after the last moment, and by half-hours then.
func (w *whole) until(ctx context.Context, at time.Time) error {
	last := w.time()
	for w.time().Before(at) {
		step := flex.HalfHour
		if w.supplied && w.time().Before(last.Add(soon)) {
			step = time.Minute
		}

		next := w.time().Truncate(step).Add(step)
		if next.After(at) {
			next = at
		}

		w.run(next)
		w.now.Store(&next)

		if err := w.readHeaters(ctx); err != nil {
			return err
		}
		if err := w.runUntilIdle(ctx); err != nil {
			return err
		}

		if err := w.meter(ctx); err != nil {
			return err
		}
		if err := w.checkDay(ctx); err != nil {
			return err
		}
	}

	return ctx.Err()
}

// allJobs is how often all jobs run, those with nothing due too, as they do in a service. It is half of what
// a small fleet costs, where that is done every hour.
const allJobs = 6 * time.Hour

// runUntilIdle has all that is due done, and every push that is due tried.
func (w *whole) runUntilIdle(ctx context.Context) error {
	if w.kill != nil {
		if err := w.die(ctx); err != nil {
			return err
		}
	}

	if err := w.runJobs(ctx); err != nil {
		return err
	}

	return w.askBatteries(ctx)
}

func (w *whole) runJobs(ctx context.Context) error {
	if !w.time().Equal(w.time().Truncate(allJobs)) {
		return w.app.RunDue(ctx, w.org)
	}

	if err := w.app.RunUntilIdle(ctx); err != nil {
		return err
	}

	return w.drain(ctx)
}

// drainMost bounds how long the pushes of an instant may take: the client's endpoint answers at once, on the same machine.
const drainMost = 5 * time.Minute

// drain has all pushes that are due tried. It is an error if some are not.
func (w *whole) drain(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, drainMost)
	defer cancel()

	err := w.app.Push.Drain(limited, w.org)
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("pushes that are due are not tried while the clock stands still, for %v: %w", drainMost, err)
	}

	return err
}
