package delivery

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Filter selects deliveries; an empty field selects all.
type Filter struct {
	Org      flex.OrgID
	Kind     string
	State    string
	Endpoint string
	Asset    flex.AssetID
	Since    time.Time
	Before   flex.EventID // those that come after this one
	Limit    int
	Figures  bool // whether the endpoints' figures and the failures are to be read as well

	Model    string // of the asset, in any case of its letters
	Firmware string // likewise
	GSPGroup string // of its site
	Status   *int   // of HTTP, of the latest attempt; 0: no answer came
	Sort     string // one of Orders, "-" before it to turn it round; the newest first if it is empty
	Key      int64  // of the delivery Before, as Line's Key has it
	// if it is not zero, only those that have waited for longer
	WaitingFor time.Duration

	waitingBefore time.Time
}

// Orders are the columns that a list can be sorted by.
var Orders = store.DeliveryOrders

func (f Filter) query() store.DeliveryQuery {
	return store.DeliveryQuery{
		Kind:     store.PushKind(f.Kind),
		State:    flex.DeliveryState(f.State),
		Endpoint: flex.EndpointName(f.Endpoint),
		AssetID:  f.Asset,
		Since:    f.Since,
		Before:   f.Before,
		Limit:    f.Limit,
		Model:    f.Model,
		Firmware: f.Firmware,
		GSPGroup: f.GSPGroup,
		Status:   f.Status,
		Sort:     store.DeliveryOrder(f.Sort),
		Key:      f.Key,

		WaitingBefore: f.waitingBefore,
	}
}

// since computes since when the deliveries have waited at least.
func (f *Filter) since(now time.Time) {
	if f.WaitingFor > 0 {
		f.waitingBefore = now.Add(-f.WaitingFor)
	}
}

// all returns the query for all pages.
func (f Filter) all() store.DeliveryQuery {
	q := f.query()
	q.Before = flex.EventID{}

	return q
}
