package directory

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/flex"
)

// TestDistant_PanicOnTrial: the one question that is let through after a rest panics. The next is asked: none was again.
func TestDistant_PanicOnTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDistant(nil, time.Now, slog.New(slog.DiscardHandler))
		outcome := func() (flex.Meter, error) { return flex.Meter{}, errors.New("down") }
		try := func() (err error) {
			defer flex.Recover(&err)
			_, err = ask(t.Context(), d, &d.details, "1", func(context.Context) (flex.Meter, error) {
				return outcome()
			})

			return err
		}

		for range MaxFailures {
			_ = try()
		}

		time.Sleep(PauseAfter)
		outcome = func() (flex.Meter, error) { panic("broken") }
		if err := try(); err == nil {
			t.Fatal("it did not panic")
		}

		outcome = func() (flex.Meter, error) { return flex.Meter{}, nil }
		if err := try(); err != nil {
			t.Errorf("after the panic: %v", err)
		}
	})
}
