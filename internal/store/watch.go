package store

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A database that hangs, cut off without a reset or stopped, answers no statement and refuses
// none. Whoever serves requests calls DB.Watch: on a connection of its own it asks PostgreSQL
// every watchEvery. A question that is not answered within askTime is asked once more on a new
// connection; if that is not answered either, the database counts as hanging:
//
//   - every connection is closed, so that whatever waits for it fails at once with Unavailable,
//     and no place in the pool is held;
//   - no new connection is made, so that requests fail at once.
//
// It is asked on, and when it answers connections are made again. A statement that takes long
// is left alone as long as the database answers.
//
// The question commits something, so that a primary whose replica does not confirm what is
// written hangs, too. What waits for the replica then stays unseen until it is confirmed, as
// no cancellation is sent: with one, PostgreSQL would show what a failover may still lose.
//
// The question takes a lock under this process's number, which ends with the connection:
// whoever finds an idempotency key in flight whose process's lock is free knows that the process
// is gone, or gave up its requests as above. Behind a pooler in transaction mode there is no such lock (pooler.go).
const (
	watchEvery = 500 * time.Millisecond
	askTime    = 2 * time.Second
)

// connectTime is how long a connection to one host of PostgreSQL may take, unless the URL says
// otherwise.
const connectTime = 5 * time.Second

// errHangs is why connections are not made.
var errHangs = errors.New("the database does not answer")

// watch is what is known of PostgreSQL's answering, and all connections to it.
type watch struct {
	config *pgx.ConnConfig // of the connection that asks
	number int64           // of this process
	shared bool            // behind a pooler in transaction mode, where no lock is taken

	mu      sync.Mutex
	open    map[*watchedConn]struct{}
	hangs   bool
	locked  bool        // whether this process's lock is held
	unfreed []*KeyClaim // that could not be given up meanwhile
}

// unfreedMax bounds the keys that are remembered; others are free after their lease.
const unfreedMax = 10_000

func newWatch(config *pgx.ConnConfig, number int64) *watch {
	own := config.Copy()
	own.RuntimeParams["application_name"] = "flexd watch"
	w := &watch{
		config: own,
		number: number,
		open:   map[*watchedConn]struct{}{},
	}

	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if w.hanging() {
			return nil, &net.OpError{
				Op:  "dial",
				Net: network,
				Err: errHangs,
			}
		}

		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		return w.add(c), nil
	}

	return w
}

// hanging reports whether the database counts as hanging.
func (w *watch) hanging() bool {
	if w == nil {
		return false
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	return w.hangs
}

// holder is what idempotency keys are claimed under: this process's number while its lock is
// held, else nothing.
func (w *watch) holder() any {
	if w == nil {
		return nil
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if !w.locked {
		return nil
	}

	return w.number
}

// patience is how long an answer may take.
func (w *watch) patience() time.Duration {
	if w.shared {
		return sharedAskTime
	}
	return askTime
}

func (w *watch) unlock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locked = false
}

func (w *watch) add(c net.Conn) net.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	watched := &watchedConn{Conn: c, watch: w}
	w.open[watched] = struct{}{}
	if w.hangs { // noticed while the connection was made
		c.Close()
	}

	return watched
}

// watchedConn is a connection that the watch can close.
type watchedConn struct {
	net.Conn
	watch *watch
}

// Close closes the connection.
func (c *watchedConn) Close() error {
	c.watch.mu.Lock()
	delete(c.watch.open, c)
	c.watch.mu.Unlock()
	return c.Conn.Close()
}

// Watch watches over the database until the context ends. It calls began once it has asked for
// the first time, and changed when the database stops answering, with the reason, and when it
// answers again, with nil. On SQLite there is nothing to watch.
//
// Requests are to be served from began on: before it this process holds no lock, so a key that
// it claims would stay taken for its whole lease if the process were killed.
func (db *DB) Watch(ctx context.Context, began func(), changed func(error)) {
	w := db.watch
	if w == nil {
		began()
		return
	}

	first := sync.OnceFunc(began)
	defer first()

	var own *pgx.Conn
	var freeing sync.WaitGroup
	defer func() {
		w.unlock()
		db.releaseProcess(ctx, own)
		freeing.Wait()
	}()

	for tick := time.NewTicker(watchEvery); ; {
		var err error
		own, err = db.ask(ctx, own)

		if ctx.Err() != nil {
			tick.Stop()
			return
		}

		news := w.note(err)
		first()
		if news {
			db.restart()
			changed(err)
		}

		// Beside the asking: what it writes may hang as all else, and only the asking notices.
		if keys := w.takeUnfreed(err); len(keys) > 0 {
			freeing.Go(func() { db.freeKeys(ctx, keys) })
		}

		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// restart forgets the pool's idle connections: those that were cut off are dead.
func (db *DB) restart() {
	db.sql.SetMaxIdleConns(-1)
	db.sql.SetMaxIdleConns(connectionsMax)
}

// ask asks on the connection, then on a new one, and returns that which answered.
func (db *DB) ask(ctx context.Context, own *pgx.Conn) (*pgx.Conn, error) {
	w := db.watch
	if own != nil {
		if err := db.askOn(ctx, own); err == nil {
			return own, nil
		}
		discard(own)
	}

	limit := w.patience()
	if w.hanging() { // nothing is lost by trying every host of the URL
		limit *= time.Duration(1 + len(w.config.Fallbacks))
	}

	late, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	own, err := pgx.ConnectConfig(late, w.config)
	if err != nil {
		return nil, err
	}

	if err := db.askOn(ctx, own); err != nil {
		discard(own)
		return nil, err
	}

	return own, nil
}

// releaseProcess releases the process's lock, and closes its connection. PostgreSQL notices a closed connection
// only a moment later, and would take the process for one that serves until then.
func (db *DB) releaseProcess(ctx context.Context, own *pgx.Conn) {
	if own == nil {
		return
	}

	if db.Shared() { // its session may be another's by now, with locks of that one
		discard(own)
		return
	}

	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()

	_, _ = own.PgConn().Exec(late, "SELECT pg_advisory_unlock_all()").ReadAll() // it may not be listening
	discard(own)
}

// discard closes a connection without a word to the other end, which may not be listening.
func discard(c *pgx.Conn) {
	if c != nil {
		c.PgConn().Conn().Close()
	}
}

// note keeps what came of asking and reports whether that is news. A database that refuses to
// answer answers.
func (w *watch) note(err error) bool {
	var refused *pgconn.PgError
	answers := err == nil || errors.As(err, &refused)
	hangs := !answers &&
		(pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded))

	w.mu.Lock()
	w.locked = err == nil && !w.shared
	news := answers && w.hangs || hangs && !w.hangs
	if news {
		w.hangs = hangs
	}

	var cut []*watchedConn
	if news && hangs {
		for c := range w.open {
			cut = append(cut, c)
		}
	}

	w.mu.Unlock()

	for _, c := range cut {
		c.Close()
	}

	return news
}

// remember notes a key that could not be given up.
func (w *watch) remember(k *KeyClaim) {
	if w == nil {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if len(w.unfreed) < unfreedMax {
		w.unfreed = append(w.unfreed, k)
	}
}

// takeUnfreed returns the keys that could not be given up, once the database answers without an
// error.
func (w *watch) takeUnfreed(err error) []*KeyClaim {
	if err != nil {
		return nil
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	var keys []*KeyClaim
	keys, w.unfreed = w.unfreed, nil

	return keys
}

// freeKeys gives up keys. One that cannot be given up is remembered again.
func (db *DB) freeKeys(ctx context.Context, keys []*KeyClaim) {
	for _, k := range keys {
		_ = db.freeKey(ctx, k)
	}
}
