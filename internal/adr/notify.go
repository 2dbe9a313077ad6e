package adr

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// The operations that subscribers are notified of.
const (
	opCreate = "CREATE"
	opUpdate = "UPDATE"
	opDelete = "DELETE"
)

// Limits of notifying.
const (
	noticesAtOnce = 6 // sent one after the other within their lease, however slow their subscribers are
	noticeLease   = 2 * time.Minute
	noticeTries   = 12 // over about 80 minutes
	noticePause   = 10 * time.Second
	noticeWait    = 15 * time.Minute    // the longest pause
	noticesKept   = 90 * 24 * time.Hour // that were sent or given up
	noticesDrop   = 5000                // that one transaction deletes
)

// subscriptionDocument is what is looked at of a subscription.
type subscriptionDocument struct {
	Operations []struct {
		Objects    []string `json:"objects"`
		Operations []string `json:"operations"`
		URL        string   `json:"callbackUrl"`
	} `json:"objectOperations"`
}

// notify queues what subscribers are to be notified of.
func (s *Service) notify(
	ctx context.Context,
	tx *store.Tx,
	o *Object,
	operation string,
) error {
	return s.notifyWithin(ctx, tx, o, operation, math.MaxInt)
}

// notifyWithin queues what subscribers are to be notified of, and fails with TooLarge if that has more bytes than most allows. A client
// is notified of what it may read.
func (s *Service) notifyWithin(
	ctx context.Context,
	tx *store.Tx,
	o *Object,
	operation string,
	most int,
) error {
	subscribers, err := tx.ADRSubscribers(ctx, o.Kind)
	if err != nil || len(subscribers) == 0 {
		return err
	}

	notice := map[string]any{
		"objectType": string(o.Kind),
		"operation":  operation,
		"object":     o.Document(),
	}

	if len(o.Targets) > 0 {
		notice["targets"] = o.Targets
	}

	body, err := json.Marshal(notice)
	if err != nil {
		return err
	}

	left := most
	sent := map[string]int{} // bytes, by client
	for i := range subscribers {
		to := &subscribers[i]

		// One subscription of a VEN may ask for many notices: they are counted before they are queued.
		room := math.MaxInt
		if !to.Business {
			room = (most/NoticesShare - sent[to.Client]) / len(body)
		}

		if room <= 0 {
			continue
		}

		n, err := notifyOne(
			ctx,
			tx,
			to,
			o,
			operation,
			string(body),
			room,
		)
		if err != nil {
			return err
		}

		sent[to.Client] += n * len(body)
		left -= n * len(body)
		if left < 0 {
			return flex.Fail(
				flex.TooLarge,
				"the subscribers would be sent more than %d bytes: make the object smaller, or delete subscriptions",
				most,
			)
		}
	}

	return nil
}

// notifyOne queues what one subscriber is to be notified of, in at most as many notices as most says, and returns their number.
func notifyOne(
	ctx context.Context,
	tx *store.Tx,
	sub *store.ADRSubscriber,
	o *Object,
	operation, body string,
	most int,
) (int, error) {
	if !concerns(&sub.ADRObject, o) {
		return 0, nil
	}

	c := Client{ID: sub.Client, Business: sub.Business}
	_, err := tx.ADRObject(
		ctx,
		c.scope(flex.ADRSearch{Kind: o.Kind, ID: o.ID}),
	)

	if flex.KindOf(err) == flex.NotFound {
		return 0, nil
	}

	if err != nil {
		return 0, err
	}

	var d subscriptionDocument
	err = json.Unmarshal([]byte(sub.ADRObject.Document), &d)
	if err != nil {
		return 0, err
	}

	n := 0
	for _, one := range d.Operations {
		if n == most {
			break
		}

		if slices.Contains(one.Objects, string(o.Kind)) &&
			slices.Contains(one.Operations, operation) {
			err := tx.QueueADRNotice(ctx, store.ADRNotice{
				Subscription: sub.ID,
				URL:          one.URL,
				Body:         body,
			})

			if err != nil {
				return n, err
			}

			n++
		}
	}

	return n, nil
}

// concerns reports whether a subscription's program and targets let an object through.
func concerns(sub *flex.ADRObject, o *Object) bool {
	program := o.Program
	if o.Kind == flex.ADRProgram {
		program = o.ID
	}

	other := !sub.Program.IsZero() && program != sub.Program
	aimed := len(sub.Targets) == 0 ||
		slices.ContainsFunc(sub.Targets, func(t string) bool {
			return slices.Contains(o.Targets, t)
		})

	return !other && aimed
}

// SendNotices sends the notices that are due. One that is not taken is tried again, ever later, for
// about 80 minutes.
func (s *Service) SendNotices(ctx context.Context) (worker.Report, error) {
	var due []store.ADRNotice
	var taken int
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		due, taken, err = all.TakeADRNotices(ctx, noticesAtOnce, noticeLease)
		return err
	})

	if err != nil {
		return worker.Report{}, err
	}

	for _, n := range due {
		problem, isSilent := s.silence(n.URL)
		if !isSilent {
			var answered bool
			problem, answered = s.send(ctx, n)
			if !answered {
				s.silent.Store(n.URL, silence{problem, s.DB.Now().Add(noticePause)})
			}
		}

		err := s.DB.WriteAll(ctx, func(all *store.All) error {
			if problem == "" || n.Tries >= noticeTries {
				return all.ADRNoticeDone(ctx, n, problem)
			}

			return all.ADRNoticeAgain(
				ctx,
				n,
				all.Now().Add(min(noticePause<<(n.Tries-1), noticeWait)),
				problem,
			)
		})

		if err != nil {
			return worker.Report{}, err
		}
	}

	return worker.Report{Did: taken, More: taken == noticesAtOnce}, nil
}

// silence is that an address did not answer, and until when it is not called again: else it would keep all others waiting, once
// for each notice.
type silence struct {
	problem string
	until   time.Time
}

// silence is why an address is not called now, if it is not.
func (s *Service) silence(url string) (string, bool) {
	kept, is := s.silent.Load(url)
	if !is {
		return "", false
	}

	was := kept.(silence)
	if !s.DB.Now().Before(was.until) {
		s.silent.Delete(url)
		return "", false
	}

	return was.problem, true
}

// send sends a notice once and says what went wrong, "" if nothing did, and whether there was an answer.
func (s *Service) send(
	ctx context.Context,
	n store.ADRNotice,
) (problem string, answered bool) {
	header := map[string]string{"Content-Type": "application/json"}
	if n.Token != "" {
		header["Authorization"] = "Bearer " + n.Token.Reveal()
	}

	a, err := s.Out.Do(ctx, egress.Request{
		Method: "POST",
		URL:    n.URL,
		Header: header,
		Body:   []byte(n.Body),
	})

	if a.Status >= 200 && a.Status < 300 {
		return "", true
	}

	if err != nil {
		return err.Error(), a.Status != 0
	}

	return "it answered " + strconv.Itoa(a.Status), true
}

// Purge deletes notices that are over.
func (s *Service) Purge(ctx context.Context) (worker.Report, error) {
	var r worker.Report
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		n, err := all.DropADRNotices(ctx, all.Now().Add(-noticesKept), noticesDrop)
		r = worker.Report{Did: int(n), More: n == noticesDrop}
		return err
	})

	return r, err
}
