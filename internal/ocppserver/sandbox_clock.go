package ocppserver

import (
	"context"
	"net/http"
	"time"

	"flexd/client"
)

const (
	// clockEvery is how often a sandbox is asked for its clock.
	clockEvery = time.Second
	// clockStep is the least by which a sandbox's clock must differ from what was known of it
	// to have been advanced: less is how long the answer took.
	clockStep = 2 * time.Second
)

// now is the time at flexd: the true time, or in a sandbox the organisation's, which may have
// been advanced.
func (b *Bridge) now() time.Time {
	return b.trueNow().Add(time.Duration(b.clockOffset.Load()))
}

// followClock keeps the bridge by the organisation's clock in a sandbox, so that a night that
// is skipped there is over for its chargers too. A flexd that is no sandbox has no such clock,
// and is not asked again.
func (b *Bridge) followClock(ctx context.Context) {
	for {
		serverTime, err := b.Client.Clock(ctx)
		pause := clockEvery
		if err != nil {
			pause = b.Timing.Retry
		}

		switch client.StatusOf(err) {
		case http.StatusNotFound, http.StatusForbidden:
			return
		}

		if err == nil {
			b.setClock(serverTime)
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// setClock takes up the organisation's time. If it was advanced, every charger's worker looks
// at what is due by then. It only goes forward: an answer from before that came late does not
// turn it back.
func (b *Bridge) setClock(serverTime time.Time) {
	by := serverTime.Sub(b.now())
	if by < clockStep {
		return
	}

	b.clockOffset.Add(int64(by))
	b.Log.Info("the sandbox clock was advanced", "by", by.Round(time.Second), "now", serverTime)

	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.chargers {
		c.wake()
	}
}
