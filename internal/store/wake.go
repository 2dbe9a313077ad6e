package store

import "sync"

// Topic names a change that background jobs wait for. A wake-up carries no data and may be
// lost: a job finds its work at its next period anyway, and a wake-up only starts it sooner.
type Topic string

// The topics.
const (
	WakePush    Topic = "push"    // the outbox has something to send
	WakeControl Topic = "control" // prices or fleet settings changed
	WakeSettle  Topic = "settle"  // a session ended, or readings came
	// a manufacturer's cloud is to be asked
	WakeCloud   Topic = "cloud"
	WakeMail    Topic = "mail"    // an e-mail is to be sent
	WakeAlert   Topic = "alert"   // an alert is to be sent
	WakeOpenADR Topic = "openadr" // a subscriber is to be notified
	// an event of a dispatcher is to be carried out
	WakeInstructions Topic = "instructions"
	// something that a person may be looking at changed
	WakeWatch Topic = "watch"
)

// Wake notifies the topic once this transaction has committed: its background jobs run.
func (c conn) Wake(t Topic) {
	if c.wake != nil {
		*c.wake = append(*c.wake, t)
	}
}

// wakes are the channels of the jobs that wait for each topic.
type wakes struct {
	mu sync.Mutex
	by map[Topic][]chan struct{}
}

// Waker returns a channel that receives after each commit of transactions that notified the
// topic. Several commits may be received as one.
func (db *DB) Waker(t Topic) <-chan struct{} {
	db.wakes.mu.Lock()
	defer db.wakes.mu.Unlock()

	if db.wakes.by == nil {
		db.wakes.by = map[Topic][]chan struct{}{}
	}

	ch := make(chan struct{}, 1)
	db.wakes.by[t] = append(db.wakes.by[t], ch)

	return ch
}

func (w *wakes) signal(topics []Topic) {
	if len(topics) == 0 {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	for _, t := range topics {
		for _, ch := range w.by[t] {
			select {
			case ch <- struct{}{}:
			default: // a wake-up is waiting already
			}
		}
	}
}
