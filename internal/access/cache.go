package access

import (
	"sync"
	"time"
)

// A token that was looked up is believed for cacheTime, so that one that is revoked is of
// use for no longer.
const (
	cacheTime = 5 * time.Second
	cacheMax  = 20_000 // entries; when full, all are thrown away
)

// tokenCache remembers tokens that were looked up lately.
type tokenCache struct {
	mu   sync.RWMutex
	held map[[32]byte]cachedToken
}

type cachedToken struct {
	Principal
	at time.Time
}

func (c *tokenCache) get(hash [32]byte, now time.Time) (Principal, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h, ok := c.held[hash]
	if !ok || now.Sub(h.at) >= cacheTime || now.Before(h.at) {
		return Principal{}, false
	}

	return h.Principal, true
}

func (c *tokenCache) put(hash [32]byte, p Principal, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil || len(c.held) >= cacheMax {
		c.held = map[[32]byte]cachedToken{}
	}
	c.held[hash] = cachedToken{p, now}
}

func (c *tokenCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = nil
}
