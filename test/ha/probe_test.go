package ha

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flexd/client"
)

// timeline is when something succeeded, over and over.
type timeline struct {
	mu sync.Mutex
	at []time.Time
}

func (l *timeline) note(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, t)
}

// gap is how long nothing may succeed before that counts as standing still.
const gap = 1500 * time.Millisecond

// back returns when it succeeded again for good after the fault, and how long it stood still:
// the end of the last gap, or the time of the fault where there was none.
func (l *timeline) back(fault time.Time) (at time.Time, still time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.at, fault, time.Time.Compare)
	last, at := fault, fault
	for _, t := range l.at[i:] {
		if d := t.Sub(last); d > gap {
			at, still = t, still+d
		}
		last = t
	}
	return at, still
}

// succeededSince reports whether it did since an instant.
func (l *timeline) succeededSince(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at) > 0 && l.at[len(l.at)-1].After(t)
}

// watchDatabase writes to whichever PostgreSQL takes it, past HAProxy and flexd.
func (l *load) watchDatabase(ctx context.Context) {
	var all sync.WaitGroup
	for _, m := range l.databases {
		all.Go(func() {
			var conn *pgx.Conn
			defer func() {
				if conn != nil {
					conn.Close(context.Background())
				}
			}()

			for ctx.Err() == nil {
				conn = l.write(ctx, m, conn)
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
	all.Wait()
}

// write writes to one machine's PostgreSQL and returns the connection if it is good for more.
// A write counts when it is acknowledged without a warning: one whose replica did not confirm
// it comes with one.
func (l *load) write(ctx context.Context, m *machine, conn *pgx.Conn) *pgx.Conn {
	late, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if conn == nil {
		var err error
		if conn, err = pgx.Connect(late, databaseURL(m, "flexd")); err != nil {
			return nil
		}
	}

	if _, err := conn.Exec(late, "UPDATE probe SET n = n + 1 WHERE id = 1"); err != nil {
		conn.PgConn().Conn().Close()
		return nil
	}
	l.written.note(time.Now())
	return conn
}

// watchService writes through one flexd, over and over.
func (l *load) watchService(ctx context.Context, i int) {
	api := l.clients[i]
	car := l.cars[0]
	for ctx.Err() == nil {
		if err := api.PlugIn(ctx, car.asset, client.PlugInEventRequest{}); err == nil {
			l.served[i].note(time.Now())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// seedOf is what chance of a run begins with: FLEXD_HA_SEED, or one of its own, which is logged.
var seedOf = func() func(*testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("FLEXD_HA_SEED"), 10, 64); err == nil {
		seed = s
	}
	return func(*testing.T) uint64 { return seed }
}()

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", network+"1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// summary says how calls went: how many of each status, and the longest.
func summary(calls []call) string {
	statuses := map[int]int{}
	var longest call
	for _, c := range calls {
		statuses[c.status]++
		if c.took > longest.took {
			longest = c
		}
	}
	return fmt.Sprintf("%v, the longest %v (%s: %d)", statuses, longest.took.Round(time.Millisecond), longest.what, longest.status)
}
