package store_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// cutter is a proxy before a database that can end every connection.
type cutter struct {
	net.Listener
	target string
	mu     sync.Mutex
	open   []net.Conn
}

func newCutter(t *testing.T, target string) *cutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	c := &cutter{Listener: l, target: target}
	t.Cleanup(func() { l.Close(); c.cut() })

	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}

			c.mu.Lock()
			c.open = append(c.open, client, server)
			c.mu.Unlock()
			go func() { io.Copy(server, client); server.Close() }()
			go func() { io.Copy(client, server); client.Close() }()
		}
	}()
	return c
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open {
		o.Close()
	}
	c.open = nil
}

// A connection that the other end closes, at whatever moment, is a database that is not
// available for now, and never a fault of flexd's.
func TestConnectionsCut(t *testing.T) {
	direct, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	c := newCutter(t, direct.Host)
	through := *direct
	through.Host = c.Addr().String()
	db := storetest.Open(t, through.String(), store.Options{Environment: flex.Sandbox})
	seed := storetest.NewSeed(t, db, direct.String())
	asset := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)

	const cuts = 60
	failed, done := 0, make(chan struct{})
	var mu sync.Mutex
	var workers sync.WaitGroup
	judge := func(what string, err error) {
		if err == nil {
			return
		}

		mu.Lock()
		defer mu.Unlock()
		failed++
		if e, ok := errors.AsType[*flex.Error](err); !ok || e.Kind != flex.Unavailable {
			t.Errorf("%s on a connection that was cut: %v", what, err)
		}
	}

	for i := range 6 {
		workers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}

				if i%2 == 0 {
					judge("a read", db.Ping(t.Context()))
					continue
				}
				judge("a write", db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
					if err := tx.LockAsset(t.Context(), asset); err != nil {
						return err
					}
					return tx.AddEvent(t.Context(), asset, "plug_in", store.AssetEvent{})
				}))
			}
		})
	}

	for range cuts {
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		c.cut()
	}
	close(done)
	workers.Wait()
	if failed == 0 {
		t.Errorf("%d cuts met nothing", cuts)
	}
	t.Logf("%d of the calls failed", failed)

	// It is used again by itself. A connection is given up after a while, which on a busy
	// machine one may take.
	err = db.Ping(t.Context())
	for again := 0; err != nil && again < 20; again++ {
		judge("a read", err)
		err = db.Ping(t.Context())
	}
	if err != nil {
		t.Error(err)
	}
}

// No connection is made to a standby, on which every write would fail for as long as the
// connection lasts; the promoted one is used without being told.
func TestStandby(t *testing.T) {
	server := storetest.Server(t, "wal_level=replica")
	db := storetest.Open(t, server.URL, store.Options{Environment: flex.Sandbox})
	if err := server.Standby(t.Context()); err != nil {
		t.Fatal(err)
	}

	write := func() error {
		return db.WriteAll(t.Context(), func(*store.All) error { return nil })
	}
	for range 20 {
		for what, err := range map[string]error{"read": db.Ping(t.Context()), "write": write()} {
			if e, ok := errors.AsType[*flex.Error](err); !ok || e.Kind != flex.Unavailable {
				t.Fatalf("a %s at a standby: %v, want that the database is not available", what, err)
			}
		}
	}

	if err := storetest.Exec(t, server.URL, `SELECT pg_promote()`); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"read": db.Ping(t.Context()), "write": write()} {
		if err != nil {
			t.Errorf("a %s once it was promoted: %v", what, err)
		}
	}
}
