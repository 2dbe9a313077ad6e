package access

import (
	"context"
	"sync"
	"time"

	"flexd/internal/flex"
)

// verifiersMax is how many guesses are checked at once, each holding argonMemory: logging in
// may not starve the rest of the service. waitersMax is how many wait for that at most, and
// waitersOfAddress how many of one address; beyond it a login is refused without being checked.
// Secrets that flexd made, and chosen ones that were right a while ago, do not wait.
const (
	verifiersMax     = 1
	waitersMax       = 32
	waitersOfAddress = 8
)

// Organisations and operators wait in queues of their own: a flood of guesses at the interface
// keeps no operator out of the console, nor the other way round.
var (
	credentialGuesses = newGuessQueue()
	operatorGuesses   = newGuessQueue()
)

var errBusy = flex.Fail(
	flex.TooMany,
	"too many logins at once: wait and try again",
)

// guessQueue has guesses at chosen secrets checked one after the other.
type guessQueue struct {
	verifiers chan struct{}

	mu      sync.Mutex
	waiting map[string]int // by address
	total   int
}

func newGuessQueue() *guessQueue {
	return &guessQueue{
		verifiers: make(chan struct{}, verifiersMax),
		waiting:   map[string]int{},
	}
}

// derive is argon, after those that came before. It fails if too many wait, or when the context ends.
func (q *guessQueue) derive(
	ctx context.Context,
	s flex.Secret,
	salt []byte,
	from string,
) ([]byte, error) {
	if !q.enter(from) {
		return nil, &Wait{After: time.Second, Err: errBusy}
	}
	defer q.leave(from)

	select {
	case q.verifiers <- struct{}{}:
		defer func() { <-q.verifiers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	return argon(s, salt), nil
}

// enter counts one that waits, or reports that there are too many.
func (q *guessQueue) enter(from string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.total >= waitersMax || q.waiting[from] >= waitersOfAddress {
		return false
	}

	q.total++
	q.waiting[from]++

	return true
}

func (q *guessQueue) leave(from string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.total--
	q.waiting[from]--
	if q.waiting[from] == 0 {
		delete(q.waiting, from)
	}
}
