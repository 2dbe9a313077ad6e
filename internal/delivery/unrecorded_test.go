package delivery_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Of three deliveries of one endpoint the outcome of one cannot be recorded: those of the
// others are, and that one is logged, sent again and listed as waiting, until it can be.
func TestPush_Unrecorded(t *testing.T) {
	for broken := range 3 {
		each(t, func(h *fixture) {
			var logged bytes.Buffer
			h.service.Log = slog.New(slog.NewTextHandler(&logged, nil))
			e := h.endpoint(nil)
			assets := h.chargers(3)
			allow := h.Refuse("UPDATE OF accepted ON outbox", "subject", assets[broken].Bytes())

			ids := h.plan(time.Hour, assets...)
			stop := h.work(h.service)
			time.Sleep(10 * time.Minute)

			times := map[string]int{}
			for _, r := range e.all() {
				times[r.id]++
			}

			for i, id := range ids {
				isBroken := i == broken
				if (times[id.String()] > 1) != isBroken || times[id.String()] == 0 {
					h.Errorf("%d of %d was sent %d times", i, broken, times[id.String()])
				}
				if !isBroken && h.state(id) != flex.DeliveryAccepted {
					h.Errorf("%d is %s", i, h.state(id))
				}
			}

			h.waits(ids[broken])
			allow()
			time.Sleep(2 * time.Minute)
			stop()
			if h.state(ids[broken]) != flex.DeliveryAccepted {
				h.Errorf("once it can be recorded it is %s", h.state(ids[broken]))
			}
			if !strings.Contains(logged.String(), "event="+ids[broken].String()) {
				h.Errorf("the log does not say of which: %s", logged.String())
			}
		})
	}
}

// waits fails unless one push alone is listed as waiting for five minutes.
func (h *fixture) waits(id flex.EventID) {
	h.Helper()
	ctx := context.Background()
	err := h.db.ReadAll(ctx, func(all *store.All) error {
		found, total, err := all.WaitingSince(ctx, h.Org, all.Now().Add(-5*time.Minute), 10)
		if err == nil && (total != 1 || found[0].EventID != id) {
			h.Errorf("%d are listed as waiting: %+v", total, found)
		}

		return err
	})
	if err != nil {
		h.Fatal(err)
	}
}

// The disk is full while pushes are under way: their outcomes are recorded once there is room,
// and no push is sent twice. If flexd is stopped before, those pushes are sent again.
func TestPush_DiskFull(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		each(t, func(h *fixture) { h.fillDisk(stopped) })
	}
}

// fillDisk has the disk be full for three minutes while pushes are under way.
func (h *fixture) fillDisk(stopped bool) {
	e := h.endpoint(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Second) })
	ids := h.plan(time.Hour, h.chargers(30)...)
	stop := h.work(h.service)
	time.Sleep(time.Second)

	allow := h.FillDisk("UPDATE ON outbox")
	time.Sleep(3 * time.Minute)
	if n := len(e.all()); n != len(ids) {
		h.Fatalf("%d of %d are sent while the disk is full", n, len(ids))
	}

	want := len(ids)
	if stopped {
		want *= 2
		stop()
		h.service = h.newService()
	}

	allow()
	if stopped {
		stop = h.work(h.service)
	}

	time.Sleep(2 * time.Minute)
	stop()
	for _, id := range ids {
		if h.state(id) != flex.DeliveryAccepted {
			h.Errorf("in the end %s is %s", id, h.state(id))
		}
	}
	if n := len(e.all()); n != want {
		h.Errorf("%d pushes were sent %d times, want %d", len(ids), n, want)
	}
}
