package ocppserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// newUpstream returns a charger's connection to its platform. Nothing runs for it before a
// platform is named.
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

// named reports whether the charger has a platform. The caller holds the charger's mu.
func (u *upstream) named() bool {
	return u.url != ""
}

// followPlatform has the charger's platform be the one that is named now, without the charger
// noticing.
func (c *charger) followPlatform() {
	o := c.b.optionsOf(c.id)
	before := within(&c.mu, func() *link { return c.up.follow(o) })

	if before != nil {
		before.conn.CloseNow()
	}
}

// follow takes over what is named now. Another address or password counts at once, for messages
// that wait too: the platform is taken to have moved. One that is no longer named is left when
// no transaction runs and nothing waits for it, so that it can bill what it began. It returns
// the connection that is to be ended, if there is one. The caller holds the charger's mu.
func (u *upstream) follow(o chargerOptions) *link {
	u.readOnly = o.readOnly
	address := ""
	if o.upstream != "" {
		address = strings.TrimRight(o.upstream, "/") + "/" + u.c.id
	}

	moved := address != u.url
	if !moved && o.upstreamPassword == u.password {
		return nil
	}
	if address == "" && u.owed() {
		return nil
	}

	u.url = address
	u.password = o.upstreamPassword
	u.addressNo++
	u.down = false

	if address == "" {
		u.forget()
		return u.link
	}
	if moved {
		u.introduce()
	}

	u.start()
	u.wake()

	return u.link
}

// owed reports whether the platform has yet to hear of a transaction, or of its end.
func (u *upstream) owed() bool {
	for _, n := range u.c.connectors {
		if n.tx != 0 {
			return true
		}
	}

	return len(u.queue) > 0
}

// forget drops what a platform set that is no longer named, so that it does not bound the plan.
func (u *upstream) forget() {
	bounded := len(u.limits) > 0
	u.numbers = nil
	u.limits = nil
	if bounded {
		u.planAgain()
	}

	u.c.b.Log.Info("a charger has no platform any more", "charger", u.c.id)
}

// introduction is a message by which a platform meets a charger.
type introduction struct {
	action  string
	payload any
}

// introduce tells a platform that has not met the charger what it is and how its connectors are,
// before anything else: the charger itself will not boot for it. A charger that has said nothing
// yet is left to introduce itself.
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

		said := statusNotification{
			Connector: integer(number),
			Error:     "NoError",
			Status:    n.status,
			At:        stamp{n.heard},
		}

		next := introduction{"StatusNotification", said}
		if ofStation(u.version) {
			next.payload = said.station()
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
