package ocppserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// passUp sends a message of the charger's on to its platform. What the platform has to answer
// is answered later: then it reports true. Everything else is answered here.
func (c *charger) passUp(
	l *link,
	id json.RawMessage,
	action string,
	payload json.RawMessage,
) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if !c.up.named() {
		return false
	}

	above := slices.Contains(answeredAbove, action)
	behind := c.up.link == nil || len(c.up.queue) > 0
	if action == "Heartbeat" && behind {
		return false // it says nothing that will be worth knowing later
	}
	if !above {
		c.up.add(action, payload).release()
		return false
	}

	if before := c.up.repeated(action, payload); before != nil {
		c.work(func() { c.answerHere(l, id, before) })
		return true
	}

	e := c.up.add(action, payload)
	c.work(func() { c.answerAbove(l, id, e) })

	return true
}

// repeated returns the message that the bridge has answered and the platform not yet, and that
// the charger says again. The caller holds mu.
func (u *upstream) repeated(action string, payload json.RawMessage) *queuedMessage {
	for _, e := range u.queue {
		same := e.Action == action && bytes.Equal(e.Payload, payload)
		said := e.ofTransaction() || e.Action == "TransactionEvent"
		if same && e.closed && said {
			return e
		}
	}

	return nil
}

// answerAbove answers a message with what the platform says, or if it is down or too slow by
// itself. The charger may be gone by then: it will say it again.
func (c *charger) answerAbove(l *link, id json.RawMessage, e *queuedMessage) {
	timer := time.NewTimer(c.b.Timing.Above)
	defer timer.Stop()

	select {
	case <-e.ended:
	case <-timer.C:
	case <-l.gone:
	}

	number := c.b.nextTransaction()
	r := within(&c.mu, func() *reply {
		if e.result == nil {
			c.withdraw(l, e, number)
		}
		return e.result
	})

	switch {
	case r == nil:
		c.answerHere(l, id, e)
	case r.err != nil:
		_ = l.reply(c.b.ctx, id, nil, r.err)
	default:
		c.answerWith(l, id, e, r.result, number)
	}
}

// withdraw ends the waiting for the platform's answer. What begins or ends a transaction stays
// to be sent, with a number of the bridge's, unless the charger is gone and will say it again.
// The caller holds mu.
func (c *charger) withdraw(l *link, e *queuedMessage, number int) {
	e.release()
	gone := false
	select {
	case <-l.gone:
		gone = true
	default:
	}

	if e.Action == "StartTransaction" {
		e.Local = number
	}

	if !e.stays() || gone {
		c.up.queue = slices.DeleteFunc(c.up.queue, func(o *queuedMessage) bool {
			return o == e
		})
	}
}

// answerHere answers a message by itself.
func (c *charger) answerHere(l *link, id json.RawMessage, e *queuedMessage) {
	answer, err := c.takeErrand(e, e.Local)
	c.answered(l, id, answer, err)
}

// takeErrand takes note of a message in the version that it came in.
func (c *charger) takeErrand(e *queuedMessage, number int) (any, error) {
	if e.Station {
		return c.takeStation(e.Action, e.Payload)
	}

	return c.takeAs(e.Action, e.Payload, number)
}

// answerWith answers a message with what the platform said, and takes note of it. A number that
// is another transaction's here is replaced.
func (c *charger) answerWith(
	l *link,
	id json.RawMessage,
	e *queuedMessage,
	result json.RawMessage,
	number int,
) {
	var start startAnswer
	if e.Action == "StartTransaction" && json.Unmarshal(result, &start) == nil {
		c.mu.Lock()
		taken := slices.ContainsFunc(c.up.numbers, func(n renumbered) bool {
			return n.Local == start.Transaction
		})
		if taken {
			c.up.numbers = append(
				c.up.numbers,
				renumbered{number, start.Transaction},
			)

			result = c.up.inward(result)
			start.Transaction = number
		}
		c.mu.Unlock()
	}

	_, err := c.takeErrand(e, start.Transaction)
	if err != nil {
		c.b.Log.Warn(
			"a charger's platform took a message that says nothing here",
			"charger",
			c.id,
			"action",
			e.Action,
			"err",
			err,
		)
	}

	c.answered(l, id, result, nil)
}

// answered sends an answer, and has the worker look at what came of the message.
func (c *charger) answered(l *link, id json.RawMessage, answer any, err error) {
	if err := l.reply(c.b.ctx, id, answer, err); err != nil {
		c.b.Log.Debug(
			"a charger was gone before its answer",
			"charger",
			c.id,
			"err",
			err,
		)
	}
	c.wake()
}
