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

// pushAttempt is the end of one attempt.
type pushAttempt struct {
	outcome  store.Outcome
	response response
}

// send attempts a push once.
func (s *sender) send(push store.ClaimedPush) (attempt pushAttempt) {
	attempt.outcome.Push = push
	attempt.outcome.Version = s.endpoint.Version

	defer func() {
		if p := recover(); p != nil {
			attempt.notePanic()
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
		attempt.outcome.State = store.PushExpired
		attempt.outcome.Error = "its time was over before it could be sent"

		return attempt
	}
	if push.Replaced {
		attempt.outcome.State = store.PushExpired
		attempt.outcome.Error = "its asset was deleted, and another one with its external id has a schedule"

		return attempt
	}

	// The answer to the claim came too late: an attempt now might end after its lease.
	if now.Add(egress.AttemptTime + leaseSlack).After(s.leaseEnds) {
		attempt.outcome.State = store.PushDropped
		return attempt
	}

	body, err := render(&s.endpoint, &push, s.service.BaseURL)
	if err != nil {
		attempt.outcome.State = store.PushExpired
		attempt.outcome.Error = "it cannot be written: " + err.Error()
		s.service.Log.Error(
			"a push cannot be written, and is not sent",
			"endpoint",
			s.endpoint.Name,
			"event",
			push.EventID,
			"err",
			err,
		)

		return attempt
	}

	s.attempt(&attempt, body, now)

	return attempt
}

// notePanic makes a push due again whose attempt a panic ended.
func (a *pushAttempt) notePanic() {
	a.response = response{
		state:  store.PushPending,
		reason: "an internal error",
	}

	a.outcome.State = store.PushPending
	a.outcome.Error = a.response.reason
}

// attempt sends a body to the endpoint, and records the response.
func (s *sender) attempt(result *pushAttempt, body []byte, now time.Time) {
	push := &result.outcome.Push
	request := egress.Request{
		Method: "POST",
		URL:    address(s.endpoint.URL, push),
		Header: header(&s.endpoint, s.keys, push, body, now),
		Body:   body,
	}

	start := time.Now()
	answer, err := s.do(push, request)
	took := time.Since(start)

	result.response = classify(answer, err, s.service.DB.Now())
	result.outcome.State = result.response.state
	result.outcome.Attempt = store.Attempt{
		At: now, Took: took, Status: answer.Status, Error: result.response.reason,
		Answer: excerpt(answer.Body, result.response.state == store.PushAccepted),
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

func (a pushAttempt) apply(d *dispatcher) {
	d.sending--
	d.service.numEnded.Add(1)
	d.service.metrics.underway.Dec()

	if a.outcome.State == store.PushPending {
		a.retry(d)
	}

	a.observe(d)
	d.isGone = d.isGone || a.response.isGone
	d.service.metrics.observe(&a.outcome)
	d.recorder.add(a.outcome)
}

// retry sets when a push that was not accepted is due again, if its time is not over by then.
func (a *pushAttempt) retry(d *dispatcher) {
	o := &a.outcome
	o.Again = d.now()

	// An endpoint that is gone is disabled: its pushes wait until it is set again, whatever
	// the delay.
	if !a.response.isGone {
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
func (a *pushAttempt) observe(d *dispatcher) {
	wasSent := !a.outcome.Attempt.At.IsZero()
	if !wasSent || a.outcome.Version != d.endpoint.Version {
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
