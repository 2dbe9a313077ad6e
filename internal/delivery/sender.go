package delivery

import (
	"context"
	"runtime/debug"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/trace"
)

// sender makes attempts at the pushes of one claim.
type sender struct {
	service   *Service
	endpoint  flex.Endpoint
	keys      [][]byte
	leaseEnds time.Time
}

// attempted is the end of one attempt.
type attempted struct {
	outcome  store.Outcome
	response response
}

// send attempts a push once.
func (s *sender) send(push store.ClaimedPush) (done attempted) {
	done.outcome.Push = push
	done.outcome.Version = s.endpoint.Version

	defer func() {
		if p := recover(); p != nil {
			done.panicked()
			s.service.Log.Error(
				"panic while pushing",
				"event",
				push.EventID,
				"panic",
				p,
				"stack",
				string(debug.Stack()),
			)
		}
	}()

	now := s.service.DB.Now()
	if push.Expired {
		done.outcome.State = store.PushExpired
		done.outcome.Error = "its time was over before it could be sent"

		return done
	}
	if push.Replaced {
		done.outcome.State = store.PushExpired
		done.outcome.Error = "its asset was deleted, and another one with its external id has a schedule"

		return done
	}

	// The answer to the claim came too late: an attempt now might end after its lease.
	if now.Add(egress.AttemptTime + leaseSlack).After(s.leaseEnds) {
		done.outcome.State = store.PushDropped
		return done
	}

	body, err := render(&s.endpoint, &push, s.service.BaseURL)
	if err != nil {
		done.outcome.State = store.PushExpired
		done.outcome.Error = "it cannot be written: " + err.Error()
		s.service.Log.Error(
			"a push cannot be written, and is not sent",
			"endpoint",
			s.endpoint.Name,
			"event",
			push.EventID,
			"err",
			err,
		)

		return done
	}

	s.attempt(&done, body, now)

	return done
}

// panicked makes a push due again whose attempt a panic ended.
func (a *attempted) panicked() {
	a.response = response{
		state:  store.PushPending,
		reason: "an internal error",
	}

	a.outcome.State = store.PushPending
	a.outcome.Error = a.response.reason
}

// attempt sends a body to the endpoint, and records the response.
func (s *sender) attempt(done *attempted, body []byte, now time.Time) {
	push := &done.outcome.Push
	request := egress.Request{
		Method: "POST",
		URL:    address(s.endpoint.URL, push),
		Header: header(&s.endpoint, s.keys, push, body, now),
		Body:   body,
	}

	start := time.Now()
	answer, err := s.do(push, request)
	took := time.Since(start)

	done.response = classify(answer, err, s.service.DB.Now())
	done.outcome.State = done.response.state
	done.outcome.Attempt = store.Attempt{
		At: now, Took: took, Status: answer.Status, Error: done.response.reason,
		Answer: excerpt(answer.Body, done.response.state == store.PushAccepted),
	}
}

// do sends a request and traces it.
func (s *sender) do(
	push *store.ClaimedPush,
	request egress.Request,
) (egress.Answer, error) {
	ctx, span := trace.Push(context.Background(), push.EventID)
	span.Text("flexd.event_id", push.EventID.String())

	answer, err := s.service.Out.Do(ctx, request)

	span.Int("http.response.status_code", answer.Status)
	span.End(err)
	s.service.Log.Debug(
		"push sent",
		"event",
		push.EventID,
		"kind",
		push.Kind,
		"try",
		push.Tries+1,
		"status",
		answer.Status,
		"err",
		err,
	)

	return answer, err
}

func (a attempted) apply(d *dispatcher) {
	d.sending--
	d.service.ended.Add(1)
	d.service.metrics.underway.Dec()

	if a.outcome.State == store.PushPending {
		a.retry(d)
	}

	a.observe(d)
	d.gone = d.gone || a.response.gone
	d.service.metrics.observe(&a.outcome)
	d.recorder.add(a.outcome)
}

// retry sets when a push that was not accepted is due again, if its time is not over by then.
func (a *attempted) retry(d *dispatcher) {
	o := &a.outcome
	o.Again = d.now()

	// An endpoint that is gone is disabled: its pushes wait until it is set again, whatever
	// the delay.
	if !a.response.gone {
		n := o.Push.Tries + 1
		o.Again = o.Again.Add(delay(
			n,
			d.service.Jitter(o.Push.EventID, n),
			a.response.after,
		))
	}

	if !o.Again.Before(o.Push.ExpiresTrue) {
		o.State = store.PushExpired
		o.Error += "; its time is over before the next try"
	}
}

// observe updates the breaker by an attempt at the endpoint in its current version.
func (a *attempted) observe(d *dispatcher) {
	left := !a.outcome.Attempt.At.IsZero()
	if !left || a.outcome.Version != d.endpoint.Version {
		return
	}

	if a.response.state != store.PushPending {
		d.late = d.late || d.breaker.halfOpen()
		d.breaker.reset()
		d.setResting(false)
		return
	}

	draw := func(trip int) float64 { return d.service.Jitter(d.org, trip) }
	if d.breaker.fail(d.now(), draw) {
		d.due = true
		d.restsUntil.Store(d.breaker.until.UnixMicro())
		d.setResting(true)
	}
}
