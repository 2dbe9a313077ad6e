package app

import (
	"context"
	"sync"
	"time"

	"flexd/internal/books"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// job is a background job, and its part in turning an organisation's sandbox clock. A job is not
// added without saying which: see doc.go.
type job struct {
	*worker.Worker
	part
}

// part is what a job does while a clock is turned: it is due for an organisation at instants of
// that clock, and then works on that organisation alone. Or it has none, and apart says why.
type part struct {
	next nextFunc
	run  func(ctx context.Context, org flex.OrgID) (worker.Report, error)
	// whether there is work that next names no instant for; nil if there never is
	waits func(tx *store.Tx, ctx context.Context) (bool, error)
	apart string
}

// nextFunc says when a job of an organisation is due next after an instant; zero for never.
type nextFunc = func(tx *store.Tx, ctx context.Context, after time.Time) (time.Time, error)

// apart is the part of a job that the turning of a clock has nothing to do with.
func apart(why string) part { return part{apart: why} }

// settleInterval is how long the settlement jobs rest between two runs, however many readings
// come: a fleet that streams them would have them run without a pause.
const settleInterval = time.Second

// add adds a background job to flexd, in the order in which a turn of a clock runs them.
func (h *App) add(name string, every time.Duration, wake store.Topic, run worker.Job, p part) *worker.Worker {
	w := &worker.Worker{Name: name, Every: every, Job: run, Log: h.log}
	if wake != "" {
		w.Wake = h.DB.Waker(wake)
	}
	h.jobs = append(h.jobs, job{w, p})
	return w
}

// Jobs returns the background jobs, with how their latest run went.
func (h *App) Jobs() []*worker.Worker {
	var workers []*worker.Worker
	for _, j := range h.jobs {
		workers = append(workers, j.Worker)
	}
	return workers
}

// addJobs adds the background jobs.
func (h *App) addJobs(clouds bool) {
	h.addPlanning()
	h.addOrders()
	h.addSettlement()
	h.addUpkeep(clouds)
}

// addPlanning adds what makes plans and sends them.
func (h *App) addPlanning() {
	h.add("prices", time.Minute, "", h.Market.FetchPrices, apart("sources are asked by the true clock; what the sandbox makes up lies ready before a turn begins"))
	h.add("control", 30*time.Second, store.WakeControl, h.Control.PlanDue, part{next: (*store.Tx).NextPlan, run: h.Control.PlanDueOf, waits: waveWaits})

	if h.DB.Engine() == "postgres" { // others may be at work on it
		h.add("waves", time.Second, "", h.Control.JoinWaves, apart("it helps other processes; a turn works on its organisation's wave itself"))
	}

	h.addHomes()
	h.add("absences", time.Minute, "", h.Control.FollowAways, part{next: (*store.Tx).NextAway, run: h.Control.FollowAwaysOf})
	h.add("instructions", 5*time.Second, "", h.Control.FollowInstructions, part{next: (*store.Tx).NextInstruction, run: h.Control.FollowInstructionsOf})
	h.add("releases", time.Minute, "", h.Push.CheckReleases, part{next: (*store.Tx).NextRelease, run: h.Push.CheckReleasesOf})
	h.add("push", time.Second, store.WakePush, h.Push.DispatchDue, apart("pushes are due by the true clock; a turn sends its organisation's at each instant itself"))
}

// addHomes adds what plans what is at home beside cars.
func (h *App) addHomes() {
	h.add("batteries", 30*time.Second, store.WakeControl, h.Control.PlanBatteries, part{next: nextBattery, run: h.Control.PlanBatteriesOf})
	h.add("tanks", 30*time.Second, store.WakeControl, h.Control.PlanTanks, part{next: (*store.Tx).NextTank, run: h.Control.PlanTanksOf})
}

// addOrders adds what carries out what dispatchers ask for.
func (h *App) addOrders() {
	h.add("openadr orders", 30*time.Second, store.WakeInstructions, h.Control.SendOrders, part{next: (*store.Tx).NextADROrder, run: h.Control.SendOrdersOf})
	h.add("invitations", 5*time.Minute, "", h.Products.InviteLate, part{next: product.NextInvite, run: h.Products.InviteLateOf, waits: product.InvitesWait})
	h.add("products", 30*time.Second, "", h.Products.Send, part{next: (*store.Tx).NextProduct, run: h.Products.SendOf})
	h.add("limit links", 5*time.Second, "", h.Control.WatchLinks, part{next: (*store.Tx).NextCapLink, run: h.Control.WatchLinksOf})
	h.add("openadr reports", time.Minute, store.WakeInstructions, h.ADR.ReportOrders, part{next: (*store.Tx).NextADRReport, run: h.ADR.ReportOrdersOf})
}

// addSettlement adds what turns readings into money, and tells of it.
func (h *App) addSettlement() {
	h.add("credits", 5*time.Second, store.WakeSettle, h.Reward.SettleSessions,
		part{next: (*store.Tx).NextSessionSettlement, run: h.Reward.SettleSessionsOf, waits: waiting((*store.Tx).DueSessionSettlements)}).Rest = settleInterval

	h.add("settlement", 10*time.Second, store.WakeSettle, h.Reward.SettleEvents,
		part{next: (*store.Tx).NextEventSettlement, run: h.Reward.SettleEventsOf, waits: waiting((*store.Tx).DueFlexEvents)}).Rest = settleInterval

	h.add("mail", time.Minute, store.WakeMail, h.Reward.SendMail, apart("e-mails are due by the true clock"))
	h.add("books", time.Hour, "", h.Books.CloseDue, part{next: books.NextClose, run: h.Books.CloseDueOf})
	h.add("rates", 5*time.Minute, "", h.Control.LearnRates, part{next: (*store.Tx).NextRate, run: h.Control.LearnRatesOf})
}

// addOpenADR adds what is exchanged with OpenADR's parties.
func (h *App) addOpenADR() {
	h.add("openadr notices", 10*time.Second, store.WakeOpenADR, h.ADR.SendNotices, apart("subscribers are notified by the true clock"))
	h.add("openadr servers", 5*time.Second, "", h.ADR.AskUpstreams, apart("other parties' servers are asked by the true clock"))
	h.add("old openadr notices", time.Hour, "", h.ADR.Purge, apart("notices are kept by the true clock"))
}

// addUpkeep adds what deletes what is over, and what looks after others.
func (h *App) addUpkeep(clouds bool) {
	h.add("fleet's past", 5*time.Minute, "", h.Operations.CountPast, apart("it counts what is over, and nothing is decided by it"))
	h.add("alerts", 15*time.Second, "", h.Operations.WatchAlerts, apart("operators are alarmed by the true clock"))
	h.add("alert messages", 10*time.Second, store.WakeAlert, h.Operations.SendAlerts, apart("operators are alarmed by the true clock"))
	h.add("database alert", 15*time.Second, "", h.Operations.WatchDatabase, apart("operators are alarmed by the true clock"))
	h.addOpenADR()
	h.add("old alerts", time.Hour, "", h.Operations.PurgeAlerts, apart("alerts are kept by the true clock"))
	h.add("retention", time.Hour, "", h.Reading.Purge, apart("readings are kept by the true clock"))
	h.add("deliveries", time.Hour, "", h.Push.Purge, apart("deliveries are kept by the true clock"))
	h.add("ended sessions", 5*time.Minute, "", h.Control.QueueEnded, apart("it finds what a process of the release before ended within the hour, and no turn begins on one"))
	h.add("records", time.Hour, "", h.Control.Purge, apart("it deletes what nothing asks for any more, at its own time"))

	if clouds {
		h.add("clouds", time.Minute, store.WakeCloud, h.Registry.RefreshClouds, apart("tokens of clouds end by the true clock"))
	}

	h.add("ramp", 10*time.Minute, "", h.Control.FollowFleet, apart("the fleet of all organisations is counted by the true clock"))
	h.add("moves", time.Minute, "", h.Registry.MovePoints, apart("a metering point changes its party by the true clock, for two organisations at once"))
	h.add("expiry", time.Minute, "", h.Access.PurgeExpired, apart("tokens and logins end by the true clock"))
}

func nextBattery(tx *store.Tx, ctx context.Context, after time.Time) (time.Time, error) {
	return tx.NextBattery(ctx, after, control.ChargeInterval)
}

// waveWaits reports whether prices are known that were not planned on, though nobody is plugged in, or
// another process left a part of a wave.
func waveWaits(tx *store.Tx, ctx context.Context) (bool, error) {
	fresh, left, err := tx.WaveDue(ctx)
	return fresh || left, err
}

// waiting makes of a list of what is due whether anything is.
func waiting[T any](
	due func(tx *store.Tx, ctx context.Context, limit int) ([]T, error),
) func(*store.Tx, context.Context) (bool, error) {
	return func(tx *store.Tx, ctx context.Context) (bool, error) {
		list, err := due(tx, ctx, 1)
		return len(list) > 0, err
	}
}

// turns has the turns of one organisation's clock wait for each other.
type turns struct {
	mu   sync.Mutex
	busy map[flex.OrgID]chan struct{} // closed when the turn ends
}

// take waits for a turn of the organisation's clock that is under way, and begins one.
func (t *turns) take(ctx context.Context, org flex.OrgID) (release func(), err error) {
	for {
		t.mu.Lock()
		other, taken := t.busy[org]
		if !taken {
			break
		}

		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other:
		}
	}

	defer t.mu.Unlock()

	if t.busy == nil {
		t.busy = map[flex.OrgID]chan struct{}{}
	}

	ended := make(chan struct{})
	t.busy[org] = ended

	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, org)
		close(ended)
	}, nil
}
