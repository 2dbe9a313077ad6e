package access

import (
	"context"
	"sync"
	"time"

	"flexd/internal/flex"
)

// verifiersMax is how many guesses are checked at once, each holding argonMemory: logging in
// may not starve the rest of the service. waitersMax is how many wait for that at most, and
// waitersOfAddress how many of one address; beyond it a login is turned away and not judged.
// Secrets that flexd made, and chosen ones that were right a while ago, need no turn.
const (
	verifiersMax     = 1
	waitersMax       = 32
	waitersOfAddress = 8
)

// Organisations and operators wait in lines of their own: a flood of guesses at the interface
// keeps no operator out of the console, nor the other way round.
var (
	credentialTurns = newTurns()
	operatorTurns   = newTurns()
)

var errBusy = flex.Fail(
	flex.TooMany,
	"too many logins at once: wait and try again",
)

// turns has guesses at chosen secrets checked one after the other.
type turns struct {
	verifiers chan struct{}

	mu      sync.Mutex
	waiting map[string]int // by address
	total   int
}

func newTurns() *turns {
	return &turns{
		verifiers: make(chan struct{}, verifiersMax),
		waiting:   map[string]int{},
	}
}

// derive is argon in turn. It fails if too many wait, or if who asked has gone.
func (t *turns) derive(
	ctx context.Context,
	s flex.Secret,
	salt []byte,
	from string,
) ([]byte, error) {
	if !t.enter(from) {
		return nil, &Wait{After: time.Second, Err: errBusy}
	}
	defer t.leave(from)

	select {
	case t.verifiers <- struct{}{}:
		defer func() { <-t.verifiers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	return argon(s, salt), nil
}

// enter counts one that waits, or reports that there are too many.
func (t *turns) enter(from string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total >= waitersMax || t.waiting[from] >= waitersOfAddress {
		return false
	}

	t.total++
	t.waiting[from]++

	return true
}

func (t *turns) leave(from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total--
	t.waiting[from]--
	if t.waiting[from] == 0 {
		delete(t.waiting, from)
	}
}
