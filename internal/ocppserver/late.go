package ocppserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// lateTime is how long after a call was given up its answer still counts.
	lateTime = 10 * time.Minute
	// unansweredMax is how many such calls are remembered; the oldest goes first.
	unansweredMax = 16
)

// lateReply is the error of a call that was not answered in time. Its answer may still come.
type lateReply struct {
	action string
	cause  error
	answer chan reply // has room for it
	// read reads a result in the form of OCPP 1.6
	read func(result json.RawMessage, out any) error
}

func newUnanswered(action string, answer chan reply, reason error) *lateReply {
	return &lateReply{
		action: action,
		cause:  reason,
		answer: answer,
		read: func(result json.RawMessage, out any) error {
			return json.Unmarshal(result, out)
		},
	}
}

func (u *lateReply) Error() string { return fmt.Sprintf("%s: %v", u.action, u.cause) }

func (u *lateReply) Unwrap() error { return u.cause }

// into reads an answer as link.call does.
func (u *lateReply) into(r reply, out any) error {
	if r.err != nil {
		return r.err
	}

	return u.read(r.result, out)
}

// wait waits for the late answer as long as it counts. Only one caller may.
func (u *lateReply) wait(ctx context.Context, l *link, out any) error {
	timer := time.NewTimer(lateTime)
	defer timer.Stop()

	select {
	case r := <-u.answer:
		return u.into(r, out)
	case <-l.ended:
		return errLinkLost
	case <-ctx.Done():
	case <-timer.C:
	}

	return u
}

// readAs has the late answer of a call in another form than OCPP 1.6's be read by plain. It
// returns the call's error.
func readAs[T, P any](err error, plain func(T) P) error {
	if u, ok := errors.AsType[*lateReply](err); ok {
		u.read = func(result json.RawMessage, out any) error {
			var m T
			err := json.Unmarshal(result, &m)
			*out.(*P) = plain(m)

			return err
		}
	}

	return err
}

// lateAnswer is what is done with the answer to a call if it comes before an instant.
type lateAnswer struct {
	*lateReply
	until  time.Time
	handle func(ctx context.Context, answer func(out any) error) error
}

// ifLate makes the worker process the answer to a call that timed out, if it still comes.
func (c *charger) ifLate(
	err error,
	then func(ctx context.Context, answer func(out any) error) error,
) {
	u, ok := errors.AsType[*lateReply](err)
	if !ok {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.lateAnswers = append(c.lateAnswers, lateAnswer{u, c.b.Now().Add(lateTime), then})
	if len(c.lateAnswers) > unansweredMax {
		c.lateAnswers = c.lateAnswers[1:]
	}
}

// takeLate processes the answers that came late.
func (c *charger) takeLate(ctx context.Context) error {
	c.mu.Lock()
	all := c.lateAnswers
	c.lateAnswers = nil
	c.mu.Unlock()

	var errs error
	var remaining []lateAnswer
	for _, a := range all {
		select {
		case r := <-a.answer:
			c.b.Log.Info(
				"a charger answers late",
				"charger",
				c.id,
				"action",
				a.action,
			)
			err := a.handle(ctx, func(out any) error { return a.into(r, out) })
			errs = errors.Join(errs, err)

		default:
			if c.b.Now().Before(a.until) {
				remaining = append(remaining, a)
			}
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.lateAnswers = append(remaining, c.lateAnswers...)

	return errs
}

// setLate takes up the late answer to a profile in one form. One that was accepted counts as
// if it had been in time, even if its delivery is known to have failed; a form that was
// refused is not tried again.
func (c *charger) setLate(ctx context.Context, o order, f profileFit, answer func(out any) error) error {
	var s statusAnswer
	took, notAtAll, err := profileAnswer(&s, answer(&s))
	if err != nil {
		return nil // it says nothing
	}
	if took {
		c.noteProfile(o.n, f.ID)
	}

	// Otherwise it is sent again for another reason, or was accepted meanwhile.
	current := false
	c.finish(o.n, o.p, func() {
		current = o.p.resendCount == o.resendCount && o.n.tx == o.tx && o.p.sent.steps == nil
		if !current {
			return
		}

		o.p.isOver = false
		o.p.tries = 0
		if !took {
			o.p.refusedForms = append(o.p.refusedForms, f.form)
		}
		if notAtAll {
			o.p.unknown++
		}
	})
	if !current || !took {
		return nil
	}

	c.remember(f.form, o.tx != 0)

	return c.noteAccepted(ctx, o, f)
}

// confirmLate takes up the late answer to what a charger will do: the plan must still be the
// same, and in the same step.
func (c *charger) confirmLate(o order, f profileFit, s compositeSchedule) {
	before, _ := f.limitAt(o.now)
	now, runs := f.limitAt(c.b.Now())
	same := false
	c.finish(o.n, o.p, func() {
		same = o.p.resendCount == o.resendCount && o.p.sentAt.Equal(o.now)
	})

	if runs && same && before == now {
		c.noteConfirmed(o, f, s)
	}
}

// configureLate takes up the late answer to what a charger can do. A plan that it did not
// accept is tried again with what is known now.
func (c *charger) configureLate(l *link, conf configuration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return
	}

	c.noteCapabilities(conf)
	for _, n := range c.connectors {
		if n.want != nil && n.want.sent.steps == nil {
			n.resendProfile()
		}
	}
}
