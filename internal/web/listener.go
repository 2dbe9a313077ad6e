package web

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// at once, where the system lets a process have as many
	connectionsMax = 8192
	// descriptorShare keeps a quarter of the process's descriptors for the database, endpoints
	// and files, whatever clients hold.
	descriptorShare = 0.75
)

// DefaultConnections is how many connections are taken at once unless the operator says
// otherwise: connectionsMax, or what the process's limit of open files leaves.
func DefaultConnections() int {
	files, limited := openFiles()
	if !limited || files > connectionsMax*2 {
		return connectionsMax
	}

	return max(1, min(connectionsMax, int(float64(files)*descriptorShare)))
}

// boundedListener closes connections beyond the limits as they come.
type boundedListener struct {
	net.Listener
	proxies Proxies
	limits  Limits
	log     *slog.Logger

	mu     sync.Mutex
	total  int
	held   map[string]int // by client address
	warned time.Time
}

// warnEvery is how often the log says that connections are refused.
const warnEvery = time.Minute

// Accept returns the next connection within the limits.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}

		from := ""
		a, ok := parsePeer(c.RemoteAddr().String())
		if ok && !l.proxies.Trust(a) {
			from = fold(a)
		}

		if l.take(from) {
			return &boundedConn{
				Conn:    c,
				release: sync.OnceFunc(func() { l.release(from) }),
			}, nil
		}

		c.Close()
		l.warn(from)
	}
}

// take counts a connection of an address, or reports that it is one too many. Without an
// address it counts in the total alone.
func (l *boundedListener) take(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.total >= l.limits.Connections ||
		from != "" && l.held[from] >= l.limits.PerAddress {
		return false
	}

	l.total++
	if from != "" {
		l.held[from]++
	}

	return true
}

func (l *boundedListener) release(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--

	if from == "" {
		return
	}

	l.held[from]--
	if l.held[from] == 0 {
		delete(l.held, from)
	}
}

func (l *boundedListener) warn(from string) {
	l.mu.Lock()

	total, quiet := l.total, time.Since(l.warned) < warnEvery
	if !quiet {
		l.warned = time.Now()
	}

	l.mu.Unlock()

	if !quiet {
		l.log.Warn(
			"connections are refused: there are too many",
			"from",
			from,
			"open",
			total,
			"max",
			l.limits.Connections,
			"max_of_an_address",
			l.limits.PerAddress,
		)
	}
}

// boundedConn gives its place free when it is closed.
type boundedConn struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// Write writes what the server answers. Its own refusals become JSON.
func (c *boundedConn) Write(p []byte) (int, error) {
	text := refusal(p)
	if text == nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(text); err != nil {
		return 0, err
	}

	return len(p), nil
}
