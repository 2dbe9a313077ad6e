package mcp

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// Limits of confirmations.
const (
	ConfirmationLife = 10 * time.Minute
	MaxConfirmations = 100
)

// waiting is a change that waits for its second call.
type waiting struct {
	code  string
	tool  string
	asked [sha256.Size]byte // of the arguments, but for the confirmation
	shown [sha256.Size]byte // of what the dry run showed
	until time.Time
}

// confirmations are the changes that wait, the oldest first.
type confirmations struct {
	mu   sync.Mutex
	list []waiting
}

// add gives out a confirmation.
func (c *confirmations) add(w waiting) string {
	w.code = rand.Text()

	c.mu.Lock()
	defer c.mu.Unlock()

	c.list = append(c.list, w)
	if len(c.list) > MaxConfirmations {
		c.list = c.list[1:]
	}

	return w.code
}

// take returns what a confirmation is for and forgets it: it works once.
func (c *confirmations) take(code string, now time.Time) (waiting, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for i, w := range c.list {
		if w.code != code {
			continue
		}

		c.list = append(c.list[:i:i], c.list[i+1:]...)
		return w, now.Before(w.until)
	}

	return waiting{}, false
}
