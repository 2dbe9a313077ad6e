package ocppserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// passUp forwards a message of the charger to its platform. It returns true if the platform must
// answer it, which happens later. All other messages are answered by the bridge.
func (c *charger) passUp(
	l *link,
	id json.RawMessage,
	action string,
	payload json.RawMessage,
) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if !c.up.hasPlatform() {
		return false
	}

	above := slices.Contains(answeredAbove, action)
	behind := c.up.link == nil || len(c.up.queue) > 0
	if action == "Heartbeat" && behind {
		return false // such a message has no value later
	}
	if !above {
		c.up.add(action, payload).release()
		return false
	}

	if before := c.up.queuedAnswer(action, payload); before != nil {
		c.work(func() { c.answerLocally(l, id, before) })
		return true
	}

	e := c.up.add(action, payload)
	c.work(func() { c.answerAbove(l, id, e) })

	return true
}

// queuedAnswer returns the queued message that the charger repeats: the bridge has answered it, the
// platform not yet. The caller holds mu.
func (u *upstream) queuedAnswer(action string, payload json.RawMessage) *queuedMessage {
	for _, e := range u.queue {
		same := e.Action == action && bytes.Equal(e.Payload, payload)
		isTransaction := e.ofTransaction() || e.Action == "TransactionEvent"
		if same && e.isDone && isTransaction {
			return e
		}
	}

	return nil
}

// answerAbove answers a message with the platform's answer. If the platform is down or too slow, the
// bridge answers. If the charger has disconnected by then, it will repeat the message.
func (c *charger) answerAbove(l *link, id json.RawMessage, e *queuedMessage) {
	timer := time.NewTimer(c.b.Timing.Above)
	defer timer.Stop()

	select {
	case <-e.done:
	case <-timer.C:
	case <-l.ended:
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
		c.answerLocally(l, id, e)
	case r.err != nil:
		_ = l.reply(c.b.ctx, id, nil, r.err)
	default:
		c.answerWith(l, id, e, r.result, number)
	}
}

// withdraw ends the wait for the platform's answer. A message that begins or ends a transaction stays
// queued under a number of the bridge, unless the charger has disconnected and will repeat it. The
// caller holds mu.
func (c *charger) withdraw(l *link, e *queuedMessage, number int) {
	e.release()
	removed := false
	select {
	case <-l.ended:
		removed = true
	default:
	}

	if e.Action == "StartTransaction" {
		e.Local = number
	}

	if !e.isPersistent() || removed {
		c.up.queue = slices.DeleteFunc(c.up.queue, func(o *queuedMessage) bool {
			return o == e
		})
	}
}

// answerLocally answers a message without the platform.
func (c *charger) answerLocally(l *link, id json.RawMessage, e *queuedMessage) {
	answer, err := c.handleQueued(e, e.Local)
	c.sendAnswer(l, id, answer, err)
}

// handleQueued handles a queued message in the OCPP version in which it came.
func (c *charger) handleQueued(e *queuedMessage, number int) (any, error) {
	if e.Station {
		return c.takeStation(e.Action, e.Payload)
	}

	return c.handleVersion(e.Action, e.Payload, number)
}

// answerWith forwards the platform's answer to the charger and handles it. A transaction number that
// another transaction of this charger has is replaced.
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
		numberUsed := slices.ContainsFunc(c.up.numbers, func(n renumbered) bool {
			return n.Local == start.Transaction
		})
		if numberUsed {
			c.up.numbers = append(
				c.up.numbers,
				renumbered{number, start.Transaction},
			)

			result = c.up.inward(result)
			start.Transaction = number
		}
		c.mu.Unlock()
	}

	_, err := c.handleQueued(e, start.Transaction)
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

	c.sendAnswer(l, id, result, nil)
}

// sendAnswer sends an answer to the charger and wakes the worker, which handles the message's effects.
func (c *charger) sendAnswer(l *link, id json.RawMessage, answer any, err error) {
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
