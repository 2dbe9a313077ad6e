// Package port finds ports of the loopback for programs that tests start: port 0 will not do
// for servers whose port must be known beforehand, or be the same after a restart.
package port

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
)

// The ports are below those that a system gives out to whoever asks for any, which it may do
// between a port's being found free and its being used. Each process looks among its own.
const (
	first     = 10_000
	each      = 40
	processes = 500
)

var (
	mu   sync.Mutex
	next int
)

// Free returns a port of 127.0.0.1 on which nothing listens, another at each call until the
// process has had all of its own.
func Free() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	for range each {
		p := first + os.Getpid()%processes*each + next%each
		next++
		l, err := net.Listen("tcp", Address(p))
		if err == nil {
			return p, l.Close()
		}
	}

	return 0, fmt.Errorf(
		"none of the %d ports from %d on is free",
		each,
		first+os.Getpid()%processes*each,
	)
}

// Address returns the port's address, host:port.
func Address(p int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p))
}
