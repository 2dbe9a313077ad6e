package adr

import (
	"cmp"
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

// The operations about which subscribers are notified.
const (
	opCreate = "CREATE"
	opUpdate = "UPDATE"
	opDelete = "DELETE"
)

// Limits of notifications.
const (
	noticesAtOnce = 30 // to each address one after the other, to all addresses at the same time
	noticeLease   = 2 * time.Minute
	noticesTime   = egress.AttemptTime // within it a run begins its attempts at an address: it lasts for two at most
	noticeTries   = 12                 // over about 80 minutes
	noticePause   = 10 * time.Second
	noticeWait    = 15 * time.Minute    // the longest pause
	noticesKept   = 90 * 24 * time.Hour // that were sent or given up; and reports of events that are gone
	noticesDrop   = 5000                // that one transaction deletes
	endedKept     = 24 * time.Hour      // subscriptions whose program was deleted: longer than a notice is tried
)

// subscriptionDocument has the members of a subscription that are used here.
type subscriptionDocument struct {
	Operations []struct {
		Objects    []string `json:"objects"`
		Operations []string `json:"operations"`
		URL        string   `json:"callbackUrl"`
	} `json:"objectOperations"`
}

// notify queues the notices of subscribers about an object.
func (s *Service) notify(
	ctx context.Context,
	tx *store.Tx,
	o *Object,
	operation string,
) error {
	bytesLeft := math.MaxInt
	return s.notifyWithin(ctx, tx, o, operation, &bytesLeft)
}

// notifyWithin queues the notices of subscribers about an object, and subtracts their size
// from the bytes that are left; if these are too few, it fails with TooLarge. A client is only
// notified about what it may read.
func (s *Service) notifyWithin(
	ctx context.Context,
	tx *store.Tx,
	o *Object,
	operation string,
	bytesLeft *int,
) error {
	subscribers, err := tx.ADRSubscribers(ctx, o.Kind)
	if err != nil || len(subscribers) == 0 {
		return err
	}

	body, err := noticeOf(o, operation)
	if err != nil {
		return err
	}

	most := *bytesLeft
	sentBytes := map[string]int{} // bytes, by client
	for i := range subscribers {
		to := &subscribers[i]

		// One subscription of a VEN may ask for many notices: they are counted before they are
		// queued.
		room := math.MaxInt
		if !to.Business {
			room = (most/NoticesShare - sentBytes[to.Client]) / len(body)
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

		sentBytes[to.Client] += n * len(body)
		*bytesLeft -= n * len(body)
		if *bytesLeft < 0 {
			return flex.Fail(
				flex.TooLarge,
				"the subscribers would be sent more than %d bytes: make the object smaller, or delete subscriptions",
				most,
			)
		}
	}

	return nil
}

// noticeOf returns the body of a notice.
func noticeOf(o *Object, operation string) ([]byte, error) {
	notice := map[string]any{
		"objectType": string(o.Kind),
		"operation":  operation,
		"object":     o.Document(),
	}

	if len(o.Targets) > 0 {
		notice["targets"] = o.Targets
	}

	return json.Marshal(notice)
}

// notifyOne queues at most so many notices of one subscriber, and returns their number.
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

	may, err := reads(ctx, tx, sub, o)
	if err != nil || !may {
		return 0, err
	}

	return queueNotices(ctx, tx, sub, o, operation, body, most)
}

// reads reports whether a subscriber may read an object.
func reads(
	ctx context.Context,
	tx *store.Tx,
	sub *store.ADRSubscriber,
	o *Object,
) (bool, error) {
	c := Client{ID: sub.Client, Business: sub.Business}
	_, err := tx.ADRObject(
		ctx,
		c.scope(flex.ADRSearch{Kind: o.Kind, ID: o.ID}),
	)

	if flex.KindOf(err) == flex.NotFound {
		return false, nil
	}

	return err == nil, err
}

// queueNotices queues at most so many notices to which one subscriber subscribed, and returns
// their number.
func queueNotices(
	ctx context.Context,
	tx *store.Tx,
	sub *store.ADRSubscriber,
	o *Object,
	operation, body string,
	most int,
) (int, error) {
	var d subscriptionDocument
	err := json.Unmarshal([]byte(sub.ADRObject.Document), &d)
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

// concerns reports whether a subscription's program and targets match an object.
func concerns(sub *flex.ADRObject, o *Object) bool {
	program := o.Program
	if o.Kind == flex.ADRProgram {
		program = o.ID
	}

	other := !sub.Program.IsZero() && program != sub.Program
	matches := len(sub.Targets) == 0 ||
		slices.ContainsFunc(sub.Targets, func(t string) bool {
			return slices.Contains(o.Targets, t)
		})

	return !other && matches
}

// SendNotices sends the notices that are due. One that is not accepted is tried again with
// growing delays for about 80 minutes. An address that does not answer delays no other.
func (s *Service) SendNotices(ctx context.Context) (worker.Report, error) {
	var due []store.ADRNotice
	var claimed int
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		due, claimed, err = all.TakeADRNotices(
			ctx,
			noticesAtOnce,
			noticeLease,
		)
		return err
	})

	if err != nil {
		return worker.Report{}, err
	}

	groups := byAddress(due)
	ended := make(chan error, len(groups))
	for _, same := range groups {
		go func() { ended <- s.sendInOrder(ctx, same) }()
	}

	var errs error
	for range groups {
		errs = cmp.Or(errs, <-ended)
	}

	if errs != nil {
		return worker.Report{}, errs
	}

	return worker.Report{Count: claimed, More: claimed == noticesAtOnce}, nil
}

// byAddress groups notices by their address, and preserves their order.
func byAddress(due []store.ADRNotice) [][]store.ADRNotice {
	var groups [][]store.ADRNotice
	at := map[string]int{}
	for _, n := range due {
		i, known := at[n.URL]
		if !known {
			i = len(groups)
			at[n.URL] = i
			groups = append(groups, nil)
		}

		groups[i] = append(groups[i], n)
	}

	return groups
}

// sendInOrder sends notices to one address, one after the other. If it is too slow, the rest
// waits for another run, after the notices that are due by then.
func (s *Service) sendInOrder(
	ctx context.Context,
	due []store.ADRNotice,
) (err error) {
	defer flex.Recover(&err)

	last := time.Now().Add(noticesTime)
	for i := range due {
		if time.Now().After(last) {
			return s.DB.WriteAll(ctx, func(all *store.All) error {
				return all.ADRNoticesUntried(ctx, due[i:])
			})
		}
		if err := s.sendAndNote(ctx, due[i]); err != nil {
			return err
		}
	}

	return nil
}

// sendAndNote sends a notice once, unless its address is paused now, and stores the result.
func (s *Service) sendAndNote(ctx context.Context, n store.ADRNotice) error {
	problem, isSilent := s.silence(n.URL)
	if !isSilent {
		var responded bool
		problem, responded = s.send(ctx, n)
		if !responded {
			s.noteSilence(n.URL, problem)
		}
	}

	return s.DB.WriteAll(ctx, func(all *store.All) error {
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
}

// silence records that an address did not answer, and until when it is not called again,
// because each notice to it would take as long.
type silence struct {
	problem string
	until   time.Time
}

// noteSilence records that an address did not answer, and removes the records that have ended.
func (s *Service) noteSilence(url, problem string) {
	s.silences.Range(func(other, _ any) bool {
		s.silence(other.(string))
		return true
	})

	s.silences.Store(url, silence{problem, s.DB.Now().Add(noticePause)})
}

// silence returns why an address is not called now, if it is paused.
func (s *Service) silence(url string) (string, bool) {
	stored, found := s.silences.Load(url)
	if !found {
		return "", false
	}

	previous := stored.(silence)
	wait := previous.until.Sub(s.DB.Now())
	if wait <= 0 || wait > noticePause { // the clock was set back since
		s.silences.Delete(url)
		return "", false
	}

	return previous.problem, true
}

// send sends a notice once. It returns the problem, "" if there was none, and whether there
// was an answer.
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

// Purge deletes notices that are over, subscriptions that ended with their program, and
// flexd's own reports about events that were deleted, which nobody else can delete.
func (s *Service) Purge(ctx context.Context) (worker.Report, error) {
	var r worker.Report
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		old := all.Now().Add(-noticesKept)
		n, err := all.DropADRNotices(ctx, old, noticesDrop)
		if err != nil {
			return err
		}

		reports, err := all.DropADRReports(ctx, Reporter, old, noticesDrop)
		if err != nil {
			return err
		}

		ended, err := all.DropEndedADRSubscriptions(ctx, all.Now().Add(-endedKept))
		r = worker.Report{
			Count: int(n + reports + ended),
			More:  max(n, reports) == noticesDrop,
		}

		return err
	})

	return r, err
}
