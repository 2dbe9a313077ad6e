package ocppserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// newUpstream returns a charger's connection to its platform. It does nothing until a platform
// is configured.
func newUpstream(ctx context.Context, c *charger) *upstream {
	u := &upstream{
		c:      c,
		signal: make(chan struct{}, 1),
		values: map[string]string{},
	}

	u.start = sync.OnceFunc(func() {
		c.work(func() { u.run(ctx) })
	})

	return u
}

// hasPlatform reports whether the charger has a platform. The caller holds the charger's mu.
func (u *upstream) hasPlatform() bool {
	return u.url != ""
}

// followPlatform connects the charger to the platform that is configured now, without a
// message to the charger.
func (c *charger) followPlatform() {
	o := c.b.optionsOf(c.id)
	before := within(&c.mu, func() *link { return c.up.follow(o) })

	if before != nil {
		before.conn.CloseNow()
	}
}

// follow applies the present configuration. Another address or password counts at once, for
// queued messages too: the platform is assumed to have moved. If there is no platform any
// more, the connection is used until no transaction runs and nothing is queued, so that the
// platform can bill what it began. It returns the connection to be closed, if there is one.
// The caller holds the charger's mu.
func (u *upstream) follow(o chargerOptions) *link {
	u.readOnly = o.readOnly
	address := ""
	if o.upstream != "" {
		address = strings.TrimRight(o.upstream, "/") + "/" + u.c.id
	}

	addressChanged := address != u.url
	if !addressChanged && o.upstreamPassword == u.password {
		return nil
	}
	if address == "" && u.hasPending() {
		return nil
	}

	u.url = address
	u.password = o.upstreamPassword
	u.addressCount++
	u.down = false

	if address == "" {
		u.forget()
		return u.link
	}
	if addressChanged {
		u.introduce()
	}

	u.start()
	u.wake()

	return u.link
}

// hasPending reports whether the platform is still to receive a transaction, or its end.
func (u *upstream) hasPending() bool {
	for _, n := range u.c.connectors {
		if n.tx != 0 {
			return true
		}
	}

	return len(u.queue) > 0
}

// forget drops the limits of a platform that is not configured any more, so that they do not
// limit the plan.
func (u *upstream) forget() {
	hadLimits := len(u.limits) > 0
	u.numbers = nil
	u.limits = nil
	if hadLimits {
		u.requestPlan()
	}

	u.c.b.Log.Info("a charger has no platform any more", "charger", u.c.id)
}

// introduction is a message by which a platform meets a charger.
type introduction struct {
	action  string
	payload any
}

// introduce sends a platform that does not know the charger its boot and the state of its
// connectors before anything else, because the charger will not boot again for it. A charger
// that has sent nothing yet introduces itself.
func (u *upstream) introduce() {
	if u.c.model == (bootNotification{}) {
		return
	}

	first := []introduction{{"BootNotification", u.c.model}}
	if ofStation(u.version) {
		first[0].payload = u.c.model.station()
	}

	for _, number := range u.c.numbers() {
		n := u.c.connectors[number]
		if n.status == "" {
			continue
		}

		status := statusNotification{
			Connector: integer(number),
			Error:     "NoError",
			Status:    n.status,
			At:        stamp{n.heard},
		}

		next := introduction{"StatusNotification", status}
		if ofStation(u.version) {
			next.payload = status.station()
		}
		first = append(first, next)
	}

	for i, m := range first {
		payload, err := json.Marshal(m.payload)
		if err != nil {
			u.c.b.Log.Error(
				"a charger is not introduced",
				"charger",
				u.c.id,
				"err",
				err,
			)
			return
		}

		e := newQueuedMessage(m.action, payload)
		e.setVersion(u.version)
		e.release() // nobody waits for the answer
		u.queue = slices.Insert(u.queue, i, e)
	}
}
