package store

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"flexd/internal/flex"
)

// DeliveryOrder is a column that a list of deliveries is sorted by, from the least on; "-"
// before it turns it round. The zero value is the newest first.
type DeliveryOrder string

// DeliveryOrders are the columns that a list of deliveries can be sorted by.
var DeliveryOrders = []string{"queued", "attempts", "answered", "took", "status"}

// deliveryColumn is what deliveries are sorted by: in SQL, of one that was tried (d) and of one
// that was not yet (o), and of one that was read. All are numbers.
type deliveryColumn struct {
	tried, waiting string
	of             func(d *Delivery) int64
}

// deliveryColumns are the columns that DeliveryOrder names. What was not tried is before all
// that was.
var deliveryColumns = map[string]deliveryColumn{
	"queued": {
		"d.queued_at",
		"o.queued_at",
		func(d *Delivery) int64 { return d.QueuedAt.UnixMicro() },
	},
	"attempts": {
		"d.tries",
		"0",
		func(d *Delivery) int64 { return int64(d.Tries) },
	},
	"answered": {
		"d.at",
		"0",
		func(d *Delivery) int64 {
			if d.Last.At.IsZero() {
				return 0
			}

			return d.Last.At.UnixMicro()
		},
	},
	"took": {
		"d.took",
		"0",
		func(d *Delivery) int64 { return d.Last.Took.Microseconds() },
	},
	"status": {
		"d.status",
		"0",
		func(d *Delivery) int64 { return int64(d.Last.Status) },
	},
}

// read takes an order apart. One that there is not is none.
func (o DeliveryOrder) read() (c deliveryColumn, down bool) {
	name, down := strings.CutPrefix(string(o), "-")
	c, ok := deliveryColumns[name]
	if !ok {
		return deliveryColumn{
			tried:   "0",
			waiting: "0",
			of:      func(*Delivery) int64 { return 0 },
		}, true
	}

	return c, down
}

// Key is what a delivery is sorted by, beside its id.
func (o DeliveryOrder) Key(d *Delivery) int64 {
	c, _ := o.read()
	return c.of(d)
}

// CompareDeliveries compares two deliveries of a list in this order, by their keys and ids.
func (o DeliveryOrder) CompareDeliveries(
	keyA, keyB int64,
	a, b flex.EventID,
) int {
	by := cmp.Or(cmp.Compare(keyA, keyB), bytes.Compare(a[:], b[:]))
	if _, down := o.read(); down {
		return -by
	}

	return by
}

// compare is CompareDeliveries of two that were read.
func (o DeliveryOrder) compare(a, b Delivery) int {
	return o.CompareDeliveries(o.Key(&a), o.Key(&b), a.ID, b.ID)
}

// page adds the condition that a delivery comes after the one before the page, and returns the
// order's SQL. alias is d of what was tried, o of what waits.
func (q DeliveryQuery) page(w *where, alias string) string {
	c, down := q.Sort.read()
	by := c.tried
	if alias == "o" {
		by = c.waiting
	}

	direction, after := "", ">"
	if down {
		direction, after = " DESC", "<"
	}

	id := alias + ".event_id"
	constant := by == "0"

	switch {
	case q.Before.IsZero():
	case constant && q.Key == 0:
		w.and(id+" "+after+" $%d", q.Before.Bytes())
	default:
		w.args = append(w.args, q.Key)
		w.and(
			fmt.Sprintf("(%s, %s) %s (CAST($%d AS BIGINT), ", by, id, after, len(w.args))+"$%d)",
			q.Before.Bytes(),
		)
	}

	if constant {
		return " ORDER BY " + id + direction
	}

	return fmt.Sprintf(" ORDER BY %s%s, %s%s", by, direction, id, direction)
}
