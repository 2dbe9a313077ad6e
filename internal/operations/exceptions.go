package operations

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Kind names what is wrong. The names are those of the interface, the metrics and the docs.
type Kind string

// What can be wrong.
const (
	// an operator has halted all pushes, or a part of them
	Halted Kind = "halted"
	// needs that cannot be met even at full power
	ShortTime Kind = "short_of_time"
	// needs that the permitted hours cannot meet
	ShortOffPeak Kind = "short_of_off_peak"
	// needs that a cap leaves no headroom for
	ShortHeadroom Kind = "short_of_headroom"
	// assets whose site was not planned as one, or not to the end
	SiteCutShort Kind = "site_cut_short"
	// assets that have what the check before sending left of their site's plan
	PlanRefused Kind = "plan_refused"
	// schedules that the client refused for good, or reported as failed after it accepted them
	Refused Kind = "refused"
	// dispatches under way or to come that the client refused for good, or reported as failed
	DispatchRefused Kind = "dispatch_refused"
	// pushes that the client has not taken for long
	Waiting          Kind = "waiting"
	EndpointDisabled Kind = "endpoint_disabled"
	EndpointMissing  Kind = "endpoint_missing"
	// assets that still do what a dispatch asked for, after its end
	NotReleased Kind = "not_released"
	// what dispatchers asked for by OpenADR and was not carried out, or not in full
	OrderUnmet Kind = "order_unmet"
	// instructions that call nobody, or only assets that have refused what they were sent
	InstructionUncalled Kind = "instruction_uncalled"
	// products in which no household takes part, shortly before answers end or after that
	ProductUnanswered Kind = "product_unanswered"
	// feeders that their fallback binds, as nothing was heard of their limits
	LimitLinkLost Kind = "limit_link_lost"
	// limits of feeders that are exceeded by what does not yield to them
	LimitExceeded Kind = "limit_exceeded"
	// other parties' OpenADR servers that were not heard for too long, or ask for what cannot be read
	OpenADRSilent Kind = "openadr_silent"
	// what keeps the database from its work
	DatabaseFailing Kind = "database_failing"
	// background jobs of the process whose latest run failed, or whose run does not end
	JobFailed Kind = "job_failed"
	// queued jobs that failed for good
	WorkFailed Kind = "work_failed"
	PriceStale Kind = "price_stale"
	Unplanned  Kind = "unplanned" // plugged in and not controlled
	// assets that an operator excluded from control
	Excluded Kind = "excluded"
	// hot-water tanks whose plan cannot keep them in their comfort band
	TankCold Kind = "tank_cold"
	// heat pumps whose plan cannot keep the rooms in their comfort band
	RoomCold Kind = "room_cold"
	// plugged in, and the client does not get through to the charger
	Offline         Kind = "offline"
	ReadingsMissing Kind = "readings_missing" // assets whose readings stopped
	// batteries whose state of charge stopped coming while other readings come
	ChargeMissing Kind = "charge_missing"
	// readings that wait for a decision
	ReadingsHeld Kind = "readings_held"
	// withdrawals that wait for approval, for the payment file, or for what the bank says
	PayoutWaiting Kind = "payout_waiting"
	// alerts that fire and that no route gets
	AlertUnrouted Kind = "alert_unrouted"
)

// Kinds are all of them, in the order in which they are listed.
var Kinds = []Kind{
	Halted,
	Refused,
	DispatchRefused,
	Waiting,
	Offline,
	EndpointDisabled,
	EndpointMissing,
	ShortTime,
	ShortOffPeak,
	ShortHeadroom,
	NotReleased,
	OrderUnmet,
	InstructionUncalled,
	ProductUnanswered,
	LimitLinkLost,
	LimitExceeded,
	OpenADRSilent,
	DatabaseFailing,
	JobFailed,
	WorkFailed,
	PriceStale,
	PlanRefused,
	Unplanned,
	Excluded,
	TankCold,
	RoomCold,
	SiteCutShort,
	ReadingsMissing,
	ChargeMissing,
	ReadingsHeld,
	PayoutWaiting,
	AlertUnrouted,
}

// Level says how soon somebody should look.
type Level string

// The levels.
const (
	// now: cars will not be charged as promised, or are not controlled
	Critical Level = "critical"
	Warning  Level = "warning" // within the day
)

// LateAfter is how long a push may wait before it is an exception.
const LateAfter = 2 * time.Minute

// OfflineAfter is how long a client may have a schedule without reaching the charger before it is
// an exception.
const OfflineAfter = 15 * time.Minute

// PayoutLate is how long a withdrawal may wait for approval before it is an exception, ExportLate how long an approved
// one may wait for a payment file, which is made on working days alone, and ResultLate how long one in a file may be without
// a result: a payment takes two working days, and the bank says within some more what became of it.
const (
	PayoutLate = 24 * time.Hour
	ExportLate = 5 * 24 * time.Hour
	ResultLate = 10 * 24 * time.Hour
)

// AnswersSoon is how long before answers to a product end it is an exception if nobody takes part.
const AnswersSoon = 24 * time.Hour

// examplesMax bounds the assets that are named for an exception.
const examplesMax = 20

// Exception is something that an operator should look at.
type Exception struct {
	Kind   Kind
	Level  Level
	Count  int            // of what the kind counts
	Org    flex.OrgID     // of the first that was found; zero for assets of any, and where no organisation has it
	Energy flex.WattHours // that will be missing, of the kinds of shortfall
	Title  string         // with its count, in one line
	Text   string         // what it means and what to do
	Assets []Asset        // examples, the worst first
}

// Asset names an asset of an exception.
type Asset struct {
	ID         flex.AssetID
	ExternalID string
	OrgName    string
}

// More is how many assets there are beyond the examples.
func (e *Exception) More() int {
	if len(e.Assets) == 0 {
		return 0
	}
	return e.Count - len(e.Assets)
}

// StalePrice is a source whose prices are not current.
type StalePrice struct{ Source, Why string }

// Service finds exceptions, counts the fleet and sends alerts. Set its fields before use.
type Service struct {
	DB *store.DB

	// Jobs returns the background jobs of this process; nil where none run.
	Jobs func() []*worker.Worker
	// Trouble returns the failures that this process had lately with the database; nil where nobody counts them.
	Trouble func() *store.Trouble
	// StalePrices returns the price sources that are not current; nil where none are fetched.
	StalePrices func(context.Context) ([]StalePrice, error)

	// how long alerts that ended are kept; AlertRetention if it is zero
	Retain time.Duration

	// Out sends alerts, and Mail those that are e-mails; nil where none can be sent.
	Out       *egress.Client
	Mail      func(ctx context.Context, to flex.Personal, subject, text string) error
	PlainHTTP bool // routes may be http://, for private networks

	// the address under which people reach this flexd, for the links of alerts; "" if it is not known
	BaseURL string

	Log *slog.Logger // nil means the default logger

	fleet  fleetCache
	outage outage
}

func (s *Service) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

// ownedBy notes whose exceptions are that were looked for in one organisation: the list behind each has no others then.
func ownedBy(found []Exception, org flex.OrgID) []Exception {
	for i := range found {
		if found[i].Org.IsZero() {
			found[i].Org = org
		}
	}

	return found
}

// examplesOf returns the first examplesMax assets with their external ids.
func examplesOf(
	ctx context.Context,
	all *store.All,
	ids []flex.AssetID,
) ([]Asset, error) {
	ids = ids[:min(len(ids), examplesMax)]
	owners, err := all.AssetOwners(ctx, ids)
	var assets []Asset
	for _, id := range ids {
		if o, known := owners[id]; known {
			assets = append(assets, Asset{id, o.ExternalID, o.OrgName})
		}
	}

	return assets, err
}

// nameOwners writes into the exceptions of all organisations whose they are.
func nameOwners(found []Exception, orgs []flex.Org) {
	if len(orgs) < 2 {
		return
	}

	for i := range found {
		e := &found[i]
		var names []string
		for _, a := range e.Assets {
			if !slices.Contains(names, a.OrgName) {
				names = append(names, a.OrgName)
			}
		}

		for _, o := range orgs {
			if o.ID == e.Org && !slices.Contains(names, o.Name) {
				names = append(names, o.Name)
			}
		}

		if len(names) == 0 {
			continue
		}

		first := "Of "
		if e.More() > 0 || len(e.Assets) == 0 && e.Count > 1 {
			first = "The first of "
		}

		e.Text = first + strings.Join(names, ", ") + ". " + e.Text
	}
}

// lacking says how many assets will be short of energy.
func lacking(n int) string {
	if n == 1 {
		return "1 asset will not have what it needs"
	}
	return count(n, "asset") + " will not have what they need"
}

// count writes a number with its noun, in the plural where needed.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}

	if thing == "push" {
		return grouped(n) + " pushes"
	}

	return grouped(n) + " " + thing + "s"
}

// grouped writes a number with its thousands apart, as the console does.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}

	return text
}

// kWhText writes an energy in kWh, with its thousands apart.
func kWhText(e flex.WattHours) string {
	text := strconv.FormatFloat(e.KWh(), 'f', 1, 64)
	whole, tenths, _ := strings.Cut(text, ".")
	n, _ := strconv.Atoi(whole) // FormatFloat writes digits

	return grouped(n) + "." + tenths + " kWh"
}
