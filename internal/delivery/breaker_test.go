package delivery

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	middle := func(int) float64 { return 0.5 }
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	var b breaker

	for n := 1; n < openAfter; n++ {
		if b.fail(now, middle) || b.halfOpen() {
			t.Fatalf("it opened after %d failures", n)
		}
	}

	if !b.fail(now, middle) || !b.open(now) {
		t.Fatalf("it did not open after %d failures: %+v", openAfter, b)
	}
	if b.fail(now, middle) {
		t.Error("an attempt that began before it opened opened it again")
	}

	now = now.Add(backoffMin)
	if b.open(now) || !b.halfOpen() {
		t.Fatalf("it is not half open after %v: %+v", backoffMin, b)
	}

	if !b.fail(now, middle) || !b.open(now.Add(2*backoffMin-1)) || b.open(now.Add(2*backoffMin)) {
		t.Errorf("a failure while half open did not open it for twice as long: %+v", b)
	}

	b.reset()
	if b.open(now) || b.halfOpen() {
		t.Errorf("an attempt that was taken did not close it: %+v", b)
	}
}
