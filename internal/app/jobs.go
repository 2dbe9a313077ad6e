package app

import (
	"context"
	"time"

	"flexd/internal/books"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// job is a background job, and its part in an advance of an organisation's sandbox clock.
// Every job must have a part: see doc.go.
type job struct {
	*worker.Worker
	part
}

// part is what a job does during an advance of a sandbox clock: either it is due for an
// organisation at instants of that clock, and then works for that organisation alone; or it
// does nothing, and apart says why.
type part struct {
	next nextFunc
	run  func(ctx context.Context, org flex.OrgID) (worker.Report, error)
	// whether there is work for which next has no instant; nil if there never is
	hasUndatedWork func(tx *store.Tx, ctx context.Context) (bool, error)
	apart          string
}

// nextFunc returns when a job of an organisation is due next after an instant; zero for never.
type nextFunc = func(tx *store.Tx, ctx context.Context, after time.Time) (time.Time, error)

// skipsAdvance is the part of a job that does nothing during an advance.
func skipsAdvance(why string) part { return part{apart: why} }

// noTopic is the topic of a job that runs only periodically.
const noTopic store.Topic = ""

// settleInterval is the least time between two runs of the settlement jobs: a fleet that
// streams readings would have them run continuously.
const settleInterval = time.Second

// add adds a background job: its name, its period, the topic whose commits start a run, the
// function that does its work for all organisations, and its part in an advance. An advance
// runs the jobs in the order in which they were added.
func (a *App) add(
	name string,
	every time.Duration,
	wake store.Topic,
	run worker.Job,
	p part,
) *worker.Worker {
	w := &worker.Worker{Name: name, Every: every, Job: run, Log: a.log}
	if wake != noTopic {
		w.Wake = a.DB.Waker(wake)
	}
	a.jobs = append(a.jobs, job{w, p})
	return w
}

// Jobs returns the background jobs, with the result of their latest run.
func (a *App) Jobs() []*worker.Worker {
	var workers []*worker.Worker
	for _, j := range a.jobs {
		workers = append(workers, j.Worker)
	}
	return workers
}

// addJobs adds the background jobs.
func (a *App) addJobs(clouds bool) {
	a.addPlanning()
	a.addOrders()
	a.addSettlement()
	a.addUpkeep(clouds)
}

// addPlanning adds the jobs that make plans and send them.
func (a *App) addPlanning() {
	a.add("prices", time.Minute, noTopic, a.Market.FetchPrices,
		skipsAdvance("sources are asked by the true clock; a sandbox's made-up prices are published before an advance begins"))

	a.add("control", 30*time.Second, store.WakeControl, a.Control.PlanDue, part{
		next:           (*store.Tx).NextPlan,
		run:            a.Control.PlanDueOf,
		hasUndatedWork: waveWaits,
	})

	if a.DB.Engine() == "postgres" { // only there can another process work on a wave
		a.add("waves", time.Second, noTopic, a.Control.JoinWaves,
			skipsAdvance("it helps other processes; an advance works on its organisation's wave itself"))
	}

	a.addHomes()
	a.add("absences", time.Minute, noTopic, a.Control.ReplanAbsences, part{
		next: (*store.Tx).NextAway,
		run:  a.Control.ReplanAbsencesOf,
	})
	a.add("instructions", 5*time.Second, noTopic, a.Control.FollowInstructions, part{
		next: (*store.Tx).NextInstruction,
		run:  a.Control.LookAtInstructionsOf,
	})

	a.add("releases", time.Minute, noTopic, a.Push.CheckReleases, part{
		next: (*store.Tx).NextRelease,
		run:  a.Push.CheckReleasesOf,
	})
	a.add("push", time.Second, store.WakePush, a.Push.DispatchDue,
		skipsAdvance("pushes are due by the true clock; an advance sends its organisation's at each instant itself"))
}

// addHomes adds the jobs that plan batteries, hot-water tanks and heat pumps.
func (a *App) addHomes() {
	a.add("batteries", 30*time.Second, store.WakeControl, a.Control.PlanBatteries, part{
		next: nextBattery,
		run:  a.Control.PlanBatteriesOf,
	})
	a.add("tanks", 30*time.Second, store.WakeControl, a.Control.PlanTanks, part{
		next: (*store.Tx).NextTank,
		run:  a.Control.PlanTanksOf,
	})
}

// addOrders adds the jobs that carry out instructions of grids and other dispatchers.
func (a *App) addOrders() {
	a.add("openadr orders", 30*time.Second, store.WakeInstructions, a.Control.SendOrders, part{
		next: (*store.Tx).NextADROrder,
		run:  a.Control.SendOrdersOf,
	})
	a.add("invitations", 5*time.Minute, noTopic, a.Products.InviteLate, part{
		next:           product.NextInvite,
		run:            a.Products.InviteLateOf,
		hasUndatedWork: product.InvitesWait,
	})

	a.add("products", 30*time.Second, noTopic, a.Products.Send, part{
		next: (*store.Tx).NextProduct,
		run:  a.Products.SendOf,
	})
	a.add("limit links", 5*time.Second, noTopic, a.Control.WatchLinks, part{
		next: (*store.Tx).NextCapLink,
		run:  a.Control.WatchLinksOf,
	})

	a.add("openadr reports", time.Minute, store.WakeInstructions, a.ADR.ReportOrders, part{
		next: (*store.Tx).NextADRReport,
		run:  a.ADR.ReportOrdersOf,
	})
}

// addSettlement adds the jobs that settle, book, and notify users.
func (a *App) addSettlement() {
	credits := a.add("credits", 5*time.Second, store.WakeSettle, a.Reward.SettleSessions, part{
		next:           (*store.Tx).NextSessionSettlement,
		run:            a.Reward.SettleSessionsOf,
		hasUndatedWork: anyDue((*store.Tx).DueSessionSettlements),
	})
	credits.Rest = settleInterval

	settlement := a.add("settlement", 10*time.Second, store.WakeSettle, a.Reward.SettleEvents, part{
		next:           (*store.Tx).NextEventSettlement,
		run:            a.Reward.SettleEventsOf,
		hasUndatedWork: anyDue((*store.Tx).DueFlexEvents),
	})
	settlement.Rest = settleInterval

	a.add("mail", time.Minute, store.WakeMail, a.Reward.SendMail, skipsAdvance("e-mails are due by the true clock"))
	a.add("books", time.Hour, noTopic, a.Books.CloseDue, part{
		next: books.NextClose,
		run:  a.Books.CloseDueOf,
	})
	a.add("rates", 5*time.Minute, noTopic, a.Control.LearnRates, part{
		next: (*store.Tx).NextRate,
		run:  a.Control.LearnRatesOf,
	})
}

// addOpenADR adds the jobs that exchange messages with OpenADR parties.
func (a *App) addOpenADR() {
	a.add("openadr notices", 10*time.Second, store.WakeOpenADR, a.ADR.SendNotices,
		skipsAdvance("subscribers are notified by the true clock"))
	a.add("openadr servers", 5*time.Second, noTopic, a.ADR.PollUpstreams,
		skipsAdvance("other parties' servers are asked by the true clock"))
	a.add("old openadr notices", time.Hour, noTopic, a.ADR.Purge,
		skipsAdvance("notices are kept by the true clock"))
}

// addUpkeep adds the jobs that alert operators, delete records after their retention, and
// count.
func (a *App) addUpkeep(clouds bool) {
	a.add("fleet's past", 5*time.Minute, noTopic, a.Operations.CountPast,
		skipsAdvance("it counts what is over, and nothing is decided by it"))
	a.addAlerts()
	a.addOpenADR()
	a.addRetention()
	a.add("ended sessions", 5*time.Minute, noTopic, a.Control.QueueEnded,
		skipsAdvance("it finds what a process of the release before ended within the hour, and no advance begins on one"))

	if clouds {
		a.add("clouds", time.Minute, store.WakeCloud, a.Registry.RefreshClouds,
			skipsAdvance("tokens of clouds end by the true clock"))
	}

	a.add("ramp", 10*time.Minute, noTopic, a.Control.SetRamp,
		skipsAdvance("the fleet of all organisations is counted by the true clock"))
	a.add("moves", time.Minute, noTopic, a.Registry.MovePoints,
		skipsAdvance("a metering point changes its party by the true clock, for two organisations at once"))
	a.add("cell moves", time.Minute, noTopic, a.watchCellMoves,
		skipsAdvance("moves between databases go by the true clock"))
}

// addAlerts adds the jobs that alert operators.
func (a *App) addAlerts() {
	trueClock := skipsAdvance("operators are alerted by the true clock")

	a.add("alerts", 15*time.Second, noTopic, a.Operations.WatchAlerts, trueClock)
	a.add("alert messages", 10*time.Second, store.WakeAlert, a.Operations.SendAlerts, trueClock)
	a.add("database alert", 15*time.Second, noTopic, a.Operations.WatchDatabase, trueClock)
}

// addRetention adds the jobs that delete records that have ended or are past their retention.
func (a *App) addRetention() {
	a.add("old alerts", time.Hour, noTopic, a.Operations.PurgeAlerts, skipsAdvance("alerts are kept by the true clock"))
	a.add("retention", time.Hour, noTopic, a.Reading.Purge, skipsAdvance("readings are kept by the true clock"))
	a.add("deliveries", time.Hour, noTopic, a.Push.Purge, skipsAdvance("deliveries are kept by the true clock"))
	a.add("records", time.Hour, noTopic, a.Control.Purge, skipsAdvance("it deletes what nothing asks for any more, at its own time"))
	a.add("expiry", time.Minute, noTopic, a.Access.PurgeExpired, skipsAdvance("tokens and logins end by the true clock"))
}

func nextBattery(tx *store.Tx, ctx context.Context, after time.Time) (time.Time, error) {
	return tx.NextBattery(ctx, after, control.ChargeInterval)
}

// waveWaits reports whether there are prices that were not planned with, even if nobody is
// plugged in, or another process left a part of a wave.
func waveWaits(tx *store.Tx, ctx context.Context) (bool, error) {
	fresh, left, err := tx.WaveDue(ctx)
	return fresh || left, err
}

// anyDue reports whether a list of what is due has anything on it.
func anyDue[T any](
	due func(tx *store.Tx, ctx context.Context, limit int) ([]T, error),
) func(*store.Tx, context.Context) (bool, error) {
	return func(tx *store.Tx, ctx context.Context) (bool, error) {
		list, err := due(tx, ctx, 1)
		return len(list) > 0, err
	}
}
