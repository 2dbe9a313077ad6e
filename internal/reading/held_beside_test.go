package reading_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store/storetest"
)

// Two operators decide about a held reading at once: one decision counts, and the answer to
// the other names it.
func TestHeld_DecidedAtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		h.exec(t, `UPDATE asset SET power_w = 7400`)
		h.take(t, half(a, "10:00", 6))
		page, _, err := h.service.Held(t.Context(), reading.HeldQuery{Org: h.org, State: flex.HeldWaiting, Limit: 10})
		if err != nil || len(page) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}

		done := make(chan error, 2)
		discard := func() {
			_, err := h.service.Discard(context.Background(), h.org, page[0].ID)
			done <- err
		}

		if h.db.Engine() != "postgres" {
			discard()
			discard()
		} else {
			gate := storetest.At(t, h.db, url).ShutGate()
			defer gate.Open()

			for i := range 2 {
				go discard()
				for len(done)+gate.Waiting() <= i {
					runtime.Gosched()
				}
			}
			gate.Open()
		}

		one, other := <-done, <-done
		if one == nil {
			one, other = other, one
		}
		if other != nil || flex.KindOf(one) != flex.Conflict || !strings.HasSuffix(one.Error(), ": "+flex.HeldDiscarded) {
			t.Errorf("discarded by two: %v and %v", one, other)
		}
	})
}

// TestTake_RegisterBeside: two batches have readings of one register at once, and the later
// mark is below the earlier one: it is judged against that, though that was not there yet when
// its batch came.
func TestTake_RegisterBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 1), asset(1)
		read := func(clock string, v float64) reading.Input { return given(a, flex.ChargerRegister, clock, 0, v) }
		h.take(t, read("10:00", 100))

		batches := [][]reading.Input{{read("10:30", 101)}, {read("11:00", 100.5)}}
		verdicts := make([][]reading.Verdict, len(batches))
		done := make(chan error, len(batches))
		take := func(i int) {
			var err error
			verdicts[i], err = h.service.Store(context.Background(), h.org, batches[i])
			done <- err
		}

		if h.db.Engine() != "postgres" {
			take(0)
			take(1)
		} else {
			gate := storetest.At(t, h.db, url).ShutGate()
			defer gate.Open()

			for i := range batches {
				go take(i)
				for len(done)+gate.Waiting() <= i {
					runtime.Gosched()
				}
			}
			gate.Open()
		}

		for range batches {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if first, second := verdicts[0][0], verdicts[1][0]; !first.Accepted() || second.Accepted() {
			t.Errorf("the first: %q, the second, below it: %q", first, second)
		}
	})
}
