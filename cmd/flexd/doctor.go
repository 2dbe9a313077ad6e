package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/operations"
	records "flexd/internal/store"
)

// doctor is `flexd doctor`.
type doctor struct {
	cellFlags
	JSON bool `help:"Print as JSON." name:"json"`
}

// symptom is one finding of the doctor.
type symptom struct {
	Part   string `json:"part"`
	Well   bool   `json:"well"`
	Detail string `json:"detail"`
	Do     string `json:"do,omitempty"` // what to do about it
}

// Run checks the store, the prices, the pushes and the organisations. It says what is wrong,
// and what to do about it.
func (d *doctor) Run(ctx context.Context, c console) error {
	h, err := d.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	found := checkServing(d.store)

	for _, l := range d.looks() {
		found = append(found, l.try(ctx, h)...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}

	ill := 0
	for _, s := range found {
		if !s.Well {
			ill++
		}
	}

	if d.JSON {
		err = c.json(found)
	} else {
		err = c.symptoms(found)
	}

	if err == nil && ill > 0 {
		err = fmt.Errorf("not well: %d of %s", ill, flex.Count(len(found), "part"))
	}

	return err
}

func (c console) symptoms(found []symptom) error {
	w := tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)
	for _, s := range found {
		mark := "ok"
		if !s.Well {
			mark = "NOT WELL"
		}

		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, s.Part, s.Detail)

		if s.Do != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", s.Do)
		}
	}

	return w.Flush()
}

// checkServing checks whether a flexd serves a SQLite database. On PostgreSQL that is not
// known.
func checkServing(s store) []symptom {
	path, embedded := s.path()
	if !embedded {
		return nil
	}

	served, err := isDatabaseLocked(path)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}

	serving := symptom{
		Part:   "serving",
		Well:   served,
		Detail: "a flexd serves this database",
	}

	if err != nil {
		serving.Detail = err.Error()
		serving.Do = "run the doctor as the user that flexd serve runs as"
	} else if !served {
		serving.Detail = "no flexd serves this database"
		serving.Do = "nothing is planned or sent, and no alert is raised, until one does: flexd serve"
	}

	return []symptom{serving}
}

func checkLaws(ctx context.Context, h *app.App) ([]symptom, error) {
	findings, err := h.DB.Verify(ctx)
	if err != nil {
		return nil, err
	}

	laws := symptom{
		Part:   "records",
		Well:   len(findings) == 0,
		Detail: fmt.Sprintf("%d laws hold", len(records.Laws())),
	}
	if !laws.Well {
		laws.Detail, laws.Do = flex.Count(
			len(findings),
			"finding",
		), "see flexd verify; take a backup before anything else"
	}

	return []symptom{laws}, nil
}

func checkDurability(ctx context.Context, h *app.App) ([]symptom, error) {
	weak, err := h.DB.Weakness(ctx)
	if err != nil {
		return nil, err
	}

	durable := symptom{
		Part:   "durability",
		Well:   weak == "",
		Detail: h.DB.Engine() + " syncs every commit",
	}

	if weak != "" {
		durable.Detail, durable.Do = weak, "acknowledged writes can be lost in a power cut: set it on"
	}

	return []symptom{durable}, nil
}

// checkConnection compares this machine's clock with the database's, and names a pooler.
func checkConnection(_ context.Context, h *app.App) ([]symptom, error) {
	found := []symptom{checkClock(h.DB)}
	if h.DB.Shared() {
		found = append(found, symptom{
			Part: "pooler",
			Well: true,
			Detail: fmt.Sprintf(
				"in transaction mode: after a flexd was killed, an Idempotency-Key that it worked under is free after %v",
				records.IdempotencyLease,
			),
		})
	}

	return found, nil
}

// checkWriting checks that the database accepts writes.
func checkWriting(ctx context.Context, h *app.App) ([]symptom, error) {
	err := h.DB.TryToWrite(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}

	writing := symptom{
		Part:   "writing",
		Well:   err == nil,
		Detail: "the database takes what is written",
	}

	if err != nil {
		writing.Detail = strings.ReplaceAll(err.Error(), "\n", ": ")
		writing.Do = "nothing is kept: events, readings and logins are refused. " +
			"See whether its disk is full, and whether it may only be read; flexd goes on by itself once it can write"
	}

	return []symptom{writing}, nil
}

// checkClock compares this machine's clock with the database's.
func checkClock(db *records.DB) symptom {
	ahead := db.ClockOff()
	clock := symptom{
		Part:   "clock",
		Well:   ahead.Abs() <= records.ClockTolerance,
		Detail: "the database's, within a second",
	}

	if !clock.Well {
		clock.Detail = fmt.Sprintf(
			"%.1f s ahead of the database's",
			ahead.Seconds(),
		)
		clock.Do = "set both machines by NTP; meanwhile leases and due times go by the database's"
	}

	return clock
}

// checkPrices lists the sources of prices. A source that ended and that nobody needs is not a
// symptom; the exceptions follow the same rule.
func checkPrices(ctx context.Context, h *app.App) ([]symptom, error) {
	sources, err := h.PriceSources(ctx)
	if err != nil {
		return nil, err
	}

	var out []symptom
	for _, s := range sources {
		out = append(out, priceSymptom(s))
	}

	if len(out) == 0 {
		out = []symptom{{
			Part:   "prices",
			Detail: "there are none",
			Do:     "flexd prices import FILE, or serve with --price-source",
		}}
	}

	return out, nil
}

// priceSymptom is the symptom of a source of prices that has a problem.
func priceSymptom(s app.PriceSource) symptom {
	x := symptom{
		Part: "prices of " + s.Source,
		Well: true,
		Detail: "through " + flex.Clock(
			s.Through,
			flex.London,
			"2006-01-02 15:04",
		),
	}

	if s.Retired {
		x.Detail = s.Stale + "; no organisation plans or settles by them"
		return x
	}

	missingPrices := s.Lacks
	if missingPrices == "" && s.Settles {
		missingPrices = s.Stale
	}

	if missingPrices != "" {
		x.Well = false
		x.Detail, x.Do = missingPrices, "flexd prices fetch, or flexd prices import; until then the last good prices remain in force"
	}

	for _, k := range s.Rejected {
		x.Well = false
		x.Detail += fmt.Sprintf(
			"; kept out: %s: %s",
			flex.Count(k.Rows, "row"),
			k.Reason,
		)

		x.Do = "flexd prices fetch shows it; a later answer without such rows ends it"
	}

	return x
}

// checkExceptions lists what the console's first page lists. The background jobs run in the flexd
// that serves: what failed of them it has said by an alert.
func checkExceptions(
	ctx context.Context,
	h *app.App,
) ([]symptom, error) {
	found, unread, err := h.Operations.Exceptions(ctx, flex.OrgID{})
	if err != nil {
		return nil, err
	}

	out := exceptionSymptoms(found, unread)
	known, err := h.Operations.AlertList(ctx, true)
	if err != nil {
		return out, err
	}

	for _, a := range known.Alerts {
		reportedByServing := a.Org.IsZero() && slices.Contains(knownToServing, operations.Kind(a.Kind))
		if !reportedByServing {
			continue
		}

		listed := slices.IndexFunc(out, func(x symptom) bool { return x.Detail == a.Title })
		if listed >= 0 {
			out[listed].Do = a.Text // the process that serves knows the cause
			continue
		}

		out = append(out, symptom{
			Part:   a.Kind,
			Detail: a.Title,
			Do:     a.Text,
		})
	}

	if len(out) == 0 {
		out = []symptom{
			{Part: "exceptions", Well: true, Detail: "there are none"},
		}
	}

	return out, nil
}

// exceptionSymptoms lists the exceptions that were found, and the kinds that could not be
// read.
func exceptionSymptoms(
	found []operations.Exception,
	unread []operations.Unread,
) []symptom {
	var out []symptom
	for _, e := range found {
		x := symptom{
			Part:   string(e.Kind),
			Detail: e.Title,
			Do:     e.Text,
		}

		x.Detail += examplesOf(e.Assets)
		out = append(out, x)
	}

	for i := range unread {
		out = append(out, unreadSymptom(&unread[i]))
	}

	return out
}

// unreadSymptom reports a kind of exceptions that could not be read, and why.
func unreadSymptom(u *operations.Unread) symptom {
	return unknown(
		string(u.Kind),
		"flexd could not look for exceptions of this kind",
		"Whether there are any is not known; the other kinds are not affected.",
		u.Err,
	)
}

// knownToServing lists the exceptions that only the process that serves knows completely:
// those of its jobs, its database, and its sources of prices.
var knownToServing = []operations.Kind{
	operations.JobFailed,
	operations.DatabaseFailing,
	operations.PriceStale,
}

// doctorExamples bounds the assets that the doctor names for an exception.
const doctorExamples = 5

// replay is `flexd replay`.
type replay struct {
	store
	form
	Name  string `arg:"" help:"Name of the organisation."`
	Event string `arg:"" help:"Id of the delivery, the webhook-id of its push."`
}

// Run has a delivery sent once more by the flexd that serves.
func (r *replay) Run(ctx context.Context, c console) error {
	var id flex.EventID
	if err := id.UnmarshalText([]byte(r.Event)); err != nil {
		return flex.Fail(flex.Invalid, "%v", err)
	}

	h, org, err := openFor(ctx, r.store, r.Name)
	if err != nil {
		return err
	}

	defer h.Close()
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:    commandLine,
			Org:    org.ID,
			Act:    "replay delivery",
			Detail: r.Event,
		},
		func() error {
			return h.Push.Replay(ctx, org.ID, id)
		},
	)

	if err != nil {
		return err
	}

	return r.print(
		c,
		fields{"event_id": id},
		"The delivery is due again; the flexd that serves sends it within seconds.\n",
	)
}

// Limits within which the work queue is healthy.
const (
	jobsOverdue = 15 * time.Minute     // the longest that a job may have been due
	jobsFailed  = operations.FailedFor // since a job last failed for good
)

func checkJobs(ctx context.Context, h *app.App) ([]symptom, error) {
	var found []symptom
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		states, err := all.JobStates(ctx)
		for _, s := range states {
			found = append(found, jobSymptom(s, all.Now()))
		}
		return err
	})

	return found, err
}

func jobSymptom(s records.JobState, now time.Time) symptom {
	x := symptom{Part: "jobs: " + string(s.Kind), Well: true}
	x.Detail = fmt.Sprintf(
		"%d due, %d later, %d of them after a failure, %d failed for good",
		s.Due,
		s.Later,
		s.Retrying,
		s.Failed,
	)

	if s.Due > 0 && now.Sub(s.Oldest) > jobsOverdue {
		x.Well = false
		x.Detail += fmt.Sprintf(
			"; the first is due since %s",
			flex.Clock(s.Oldest, flex.London, "2006-01-02 15:04"),
		)

		x.Do = "flexd serve does them: see that one runs, with what this kind needs, and its log"
	}

	if s.Failed > 0 && now.Sub(s.FailedAt) < jobsFailed {
		x.Well = false
		x.Detail += "; the latest: " + s.Error
		x.Do = "see the log of flexd serve; a day after the last failure this is well again"
	}

	return x
}

// usernamesNamed is the number of usernames in two cells that the doctor names.
const usernamesNamed = 5

// checkUsernames looks for usernames that two organisations have in two cells. A login finds
// only the first.
func checkUsernames(
	ctx context.Context,
	h *app.App,
	eachOtherCell func(context.Context, func(*records.DB) error) error,
) ([]symptom, error) {
	if eachOtherCell == nil {
		return nil, nil
	}

	known := map[string]flex.OrgID{}
	var duplicates []string
	compare := func(db *records.DB) error {
		var names map[string]flex.OrgID
		err := db.ReadAll(ctx, func(all *records.All) error {
			var err error
			names, err = all.Usernames(ctx)
			return err
		})

		for name, org := range names {
			if other, isKnown := known[name]; isKnown && other != org {
				duplicates = append(duplicates, name)
			}
			known[name] = org
		}

		return err
	}

	if err := compare(h.DB); err != nil {
		return nil, err
	}
	if err := eachOtherCell(ctx, compare); err != nil {
		return nil, err
	}

	return []symptom{usernamesSymptom(len(known), duplicates)}, nil
}

func usernamesSymptom(known int, duplicates []string) symptom {
	if len(duplicates) == 0 {
		return symptom{
			Part:   "usernames",
			Well:   true,
			Detail: fmt.Sprintf("%d usernames, each in one cell", known),
		}
	}

	slices.Sort(duplicates)
	names := strings.Join(duplicates[:min(len(duplicates), usernamesNamed)], ", ")

	return symptom{
		Part:   "usernames",
		Detail: fmt.Sprintf("%d usernames are in two cells: %s", len(duplicates), names),
		Do:     "a login finds the first cell's alone: give the other organisation another username, flexd credential add, and revoke the old one",
	}
}

// examplesOf names some of the assets.
func examplesOf(assets []operations.Asset) string {
	text := ""
	for i, a := range assets {
		if i == doctorExamples {
			return text + ", …"
		}

		if i == 0 {
			text = ": " + a.ExternalID
		} else {
			text += ", " + a.ExternalID
		}
	}

	return text
}
