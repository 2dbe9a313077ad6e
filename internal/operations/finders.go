package operations

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// finder finds the exceptions of one kind, or of a few that are found together.
type finder struct {
	kinds []Kind
	find  findFunc
	fleet bool // it looks at the snapshot of the fleet
}

// findFunc finds exceptions of an organisation, or of all of them if it is zero. The snapshot of the fleet may be nil where the finder
// does not say that it looks at it.
type findFunc func(context.Context, *store.All, *Fleet, flex.OrgID) ([]Exception, error)

// run returns what the finder finds, and a panic as an error, so that the others are still run.
func (f finder) run(
	ctx context.Context,
	all *store.All,
	fleet *Fleet,
	org flex.OrgID,
) (found []Exception, err error) {
	defer flex.Recover(&err)
	return f.find(ctx, all, fleet, org)
}

// haltFinder is the finder that is run first, once for all organisations.
var haltFinder = finder{kinds: []Kind{Halted}, find: findHalts}

// finders are those that look at records of an organisation. failedJobs, stalePrices and databaseFailing find the rest.
var finders = []finder{
	{kinds: []Kind{Refused}, find: findRefused},
	{kinds: []Kind{DispatchRefused}, find: findDispatchRefused},
	{kinds: []Kind{Waiting}, find: findWaiting},
	{kinds: []Kind{EndpointDisabled, EndpointMissing}, find: findEndpoints, fleet: true},
	{kinds: []Kind{ShortTime, ShortOffPeak, ShortHeadroom}, find: findShort, fleet: true},
	{kinds: []Kind{Offline}, find: findOffline},
	{kinds: []Kind{NotReleased}, find: findNotReleased},
	{kinds: []Kind{OrderUnmet}, find: findOrdersUnmet},
	{kinds: []Kind{InstructionUncalled}, find: findUncalled},
	{kinds: []Kind{ProductUnanswered}, find: findUnanswered},
	{kinds: []Kind{LimitLinkLost}, find: findLimitLinksLost},
	{kinds: []Kind{LimitExceeded}, find: findLimitsExceeded},
	{kinds: []Kind{OpenADRSilent}, find: findOpenADRSilent},
	{kinds: []Kind{Unplanned}, find: findUnplanned, fleet: true},

	{kinds: []Kind{Excluded}, find: findExcluded},
	{kinds: []Kind{PlanRefused}, find: findPlanRefused, fleet: true},
	{kinds: []Kind{TankCold}, find: findColdTanks},
	{kinds: []Kind{RoomCold}, find: findColdRooms},
	{kinds: []Kind{SiteCutShort}, find: findCutShort, fleet: true},
	{kinds: []Kind{ReadingsMissing}, find: findReadingsMissing},
	{kinds: []Kind{ChargeMissing}, find: findChargeMissing},
	{kinds: []Kind{ReadingsHeld}, find: findReadingsHeld},
	{kinds: []Kind{PayoutWaiting}, find: findPayouts},
	{kinds: []Kind{WorkFailed}, find: findWorkFailed},
	{kinds: []Kind{AlertUnrouted}, find: findUnrouted},
}

// orgsToSearch are the organisations that the finders are called for, one after the other; zero is all at once.
func orgsToSearch(ctx context.Context, org flex.OrgID) []flex.OrgID {
	orgs, bounded := store.WithinOf(ctx)
	if !bounded {
		return []flex.OrgID{org}
	}

	if org.IsZero() {
		return orgs
	}

	if !store.Reaches(ctx, org) {
		return nil
	}

	return []flex.OrgID{org}
}

// haltsOf are the halts that may stop pushes of an organisation, or of any if it is zero: all but those that are of another
// organisation alone, or of one that the reader may not see.
func haltsOf(
	ctx context.Context,
	all *store.All,
	org flex.OrgID,
) (store.Halts, error) {
	halts, err := all.Halts(ctx)

	return slices.DeleteFunc(halts, func(h store.Halt) bool {
		of := h.Scope.Org
		if of.IsZero() {
			return false
		}

		others := !org.IsZero() && of != org

		return others || !store.Reaches(ctx, of)
	}), err
}

// findHalts finds the halts that concern an organisation.
func findHalts(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	halts, err := haltsOf(ctx, all, org)
	if err != nil {
		return nil, err
	}

	orgs, err := all.Orgs(ctx)
	if err != nil {
		return nil, err
	}

	names := map[flex.OrgID]string{}
	for _, o := range orgs {
		names[o.ID] = o.Name
	}

	var found []Exception
	for _, h := range halts {
		title, text := "All pushes are halted", "Chargers go on with what they have. Once that is mended, end it on the console's Safety page or with flexd resume."
		if h.Scope.Kind != store.HaltAll {
			title = "Pushes of " + h.Scope.Words(names[h.Scope.Org]) + " are halted"
			text = "Chargers go on with what they have. flexd halt --list says how many. Once that is mended, end it on the console's Safety page or with flexd resume and the same flags, such as --org."
		}

		found = append(found, Exception{
			Kind: Halted, Level: Critical, Count: 1, Text: text,
			Title: fmt.Sprintf("%s by %s since %s: %s", title, h.Who, instantText(h.At), h.Reason),
		})
	}

	return found, nil
}

func findWaiting(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	waiting, total, err := all.WaitingSince(
		ctx,
		org,
		all.Now().Add(-LateAfter),
		examplesMax,
	)
	if err != nil || total == 0 {
		return nil, err
	}

	var ids []flex.AssetID
	for _, w := range waiting {
		if !w.AssetID.IsZero() {
			ids = append(ids, w.AssetID)
		}
	}

	assets, err := examplesOf(ctx, all, ids)
	if err != nil {
		return nil, err
	}

	text := "The client does not answer, or refuses for now."
	halts, err := haltsOf(ctx, all, org)
	if len(halts) > 0 {
		text = "Pushes are halted, and what a halt keeps back is among them. Of others the client does not answer, or refuses for now."
	}

	for _, w := range waiting {
		if w.Error != "" { // of the one that has waited longest
			text += fmt.Sprintf(" The last error: %q.", w.Error)
			break
		}
	}

	return []Exception{{
		Kind: Waiting, Level: Critical, Count: total, Assets: assets,
		Title: fmt.Sprintf(
			"%s waiting for more than %d minutes, the oldest since %s",
			count(total, "push"),
			int(LateAfter.Minutes()),
			instantText(waiting[0].Since),
		),
		Text: text + " Chargers go on with what they have. The deliveries say what it answers; they leave by themselves once it takes them.",
	}}, err
}

// shortages are the kind and the text of each cause of a shortfall.
var shortages = [causes]struct {
	kind Kind
	text string
}{
	ShortOfTime: {
		ShortTime,
		"The time left is too short, even at full power. Notify the user, or move ready-by.",
	},
	ShortOfOffPeak: {
		ShortOffPeak,
		"The off-peak time left is too short, and peak time may not be used. The user can permit it, or ask to charge now.",
	},
	ShortOfHeadroom: {
		ShortHeadroom,
		"There would be time, but a cap, the main fuse or another limit leaves no headroom. The asset's page says which, and what a kW more would be worth.",
	},
}

func findShort(
	ctx context.Context,
	all *store.All,
	fleet *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	sum := fleet.Outlook(org)
	var found []Exception
	for cause, s := range sum.short {
		if s.count == 0 {
			continue
		}

		s.trim()
		ids := make([]flex.AssetID, len(s.worst))
		for i, w := range s.worst {
			ids[i] = w.id
		}

		assets, err := examplesOf(ctx, all, ids)
		if err != nil {
			return nil, err
		}

		found = append(found, Exception{
			Kind:   shortages[cause].kind,
			Level:  Critical,
			Count:  s.count,
			Energy: s.energy,
			Assets: assets,
			Text:   shortages[cause].text + worstFirst(s.count),
			Title:  lacking(s.count) + " by ready-by: " + kWhText(s.energy) + " will be missing",
		})
	}

	return found, nil
}

// worstFirst says in which order the assets of a shortfall are named.
func worstFirst(n int) string {
	if n < 2 {
		return ""
	}
	return " The one that lacks most is named first."
}

func findNotReleased(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	ids, total, err := all.NotReleased(ctx, org, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	assets, err := examplesOf(ctx, all, ids)

	return []Exception{{
		Kind:   NotReleased,
		Level:  Critical,
		Count:  total,
		Assets: assets,
		Title:  count(total, "asset") + " that still followed a dispatch after its end, by their readings of the last day",
		Text:   "They were sent the dispatch again, whose time is over. Ask the maker's client why they stay in it: they may go on charging or discharging as they were asked to.",
	}}, err
}

// TankLackMin is what a hot-water tank must be expected to lack to be an exception: some two degrees of 50 litres.
const TankLackMin flex.WattHours = 100

func findColdTanks(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	ids, err := all.ColdTanks(ctx, org, TankLackMin)
	if err != nil || len(ids) == 0 {
		return nil, err
	}

	assets, err := examplesOf(ctx, all, ids)

	return []Exception{{
		Kind:   TankCold,
		Level:  Warning,
		Count:  len(ids),
		Assets: assets,
		Title:  count(len(ids), "hot-water tank") + " whose plan cannot keep the water in its comfort band",
		Text:   "They are heated as well as can be. What leaves them too little is the element's power, the main fuse beside cars, or a draw that nobody expected: the page of the asset says how much is lacking and when.",
	}}, err
}

// RoomLackMin is how many thousandths of a degree a heat pump's rooms must be expected to lack to be an exception:
// less is hardly felt, and no thermometer of a home is better.
const RoomLackMin = 500

func findColdRooms(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	ids, err := all.ColdRooms(ctx, org, RoomLackMin)
	if err != nil || len(ids) == 0 {
		return nil, err
	}

	assets, err := examplesOf(ctx, all, ids)

	return []Exception{{
		Kind:   RoomCold,
		Level:  Warning,
		Count:  len(ids),
		Assets: assets,
		Title:  count(len(ids), "heat pump") + " whose plan cannot keep the rooms in their comfort band",
		Text:   "They heat as well as can be. What leaves the rooms too cold is the heat pump's power, the main fuse beside cars, or colder weather than is usual: the page of the asset says how much is lacking and when.",
	}}, err
}

func findOrdersUnmet(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	n, newest, err := all.UnmetADROrders(ctx, org)
	if err != nil || n == 0 {
		return nil, err
	}

	return []Exception{{
		Kind:  OrderUnmet,
		Level: Critical,
		Count: n,
		Org:   newest.Org,
		Title: count(n, "order") + " of OpenADR events not carried out, or not in full",
		Text: fmt.Sprintf(
			"The newest, of %s: %s. The dispatcher has a report that says so. They are listed for a day after their time, also by flexd openadr orders.",
			instantText(newest.MadeAt),
			newest.Problem,
		),
	}}, nil
}

func findUnplanned(
	ctx context.Context,
	all *store.All,
	fleet *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	sum := fleet.Outlook(org)
	if sum.unplanned == 0 {
		return nil, nil
	}

	assets, err := examplesOf(ctx, all, sum.unplannedIDs)

	return []Exception{{
		Kind:   Unplanned,
		Level:  Warning,
		Count:  sum.unplanned,
		Assets: assets,
		Title:  count(sum.unplanned, "asset") + " plugged in without a schedule",
		Text:   "The site has not consented to full schedule control, or has been withdrawn, or an operator excluded the asset: the charger is not controlled, which the page of the asset says, and nothing is to be done where that is as it should be. At a site that has consented, either the car was plugged in before, and is planned at its next event, or the check before sending refused its plan, which is a fault in flexd: the log says why.",
	}}, err
}

// findExcluded finds the assets that an operator took out of control, and may have forgotten.
func findExcluded(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	ids, since, total, err := all.ExcludedAssets(ctx, org, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	assets, err := examplesOf(ctx, all, ids)

	return []Exception{{
		Kind:   Excluded,
		Level:  Warning,
		Count:  total,
		Assets: assets,
		Title: fmt.Sprintf(
			"%s excluded from control, the first since %s",
			count(total, "asset"),
			instantText(since),
		),
		Text: "An operator excluded them: they are neither planned nor paused, whatever is plugged in. The audit log says who did it and when. Include them again from the list of assets once the reason is gone.",
	}}, err
}

// findPlanRefused finds the assets that have what the check before sending left of their site's plan.
func findPlanRefused(
	ctx context.Context,
	all *store.All,
	fleet *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	refused, err := all.RefusedBatteries(ctx, org)
	if err != nil {
		return nil, err
	}

	refused = slices.Concat(fleet.Outlook(org).refused, refused)
	if len(refused) == 0 {
		return nil, nil
	}

	assets, err := examplesOf(ctx, all, refused)

	return []Exception{{
		Kind:   PlanRefused,
		Level:  Critical,
		Count:  len(refused),
		Assets: assets,
		Title:  count(len(refused), "asset") + " whose site's plan was refused by the check before sending",
		Text:   "The plan would have passed a limit of the site, which is a fault in flexd. They were sent what keeps the limits, and may miss a part of what they need. Until their next plan nothing more is to be done for them; the log says which limit, which whoever maintains flexd needs.",
	}}, err
}

// findCutShort finds the assets whose sites have a plan that may be far from the best.
func findCutShort(
	ctx context.Context,
	all *store.All,
	fleet *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	sum := fleet.Outlook(org)
	if len(sum.cutShort) == 0 {
		return nil, nil
	}

	assets, err := examplesOf(ctx, all, sum.cutShort)

	return []Exception{{
		Kind:   SiteCutShort,
		Level:  Warning,
		Count:  len(sum.cutShort),
		Assets: assets,
		Title:  count(len(sum.cutShort), "asset") + " whose site was not planned as one to the end",
		Text:   "Cars and batteries of these sites keep every limit, and may cost the household more than they need to. The explanation of each asset says why, and by how much at most; nothing is to be done tonight.",
	}}, err
}

func findReadingsHeld(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	p, err := all.ReadingsWaiting(ctx, org)
	if err != nil || p.Count == 0 {
		return nil, err
	}

	return []Exception{{
		Kind:  ReadingsHeld,
		Level: Warning,
		Count: p.Count,
		Org:   p.Org,
		Title: fmt.Sprintf("%s held back since %s", count(p.Count, "reading"), instantText(p.Oldest)),
		Text:  "Their values are more than the device or the connection can do, so they are not settled. Release or discard them under Readings, or with flexd readings.",
	}}, nil
}

func findPayouts(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	approval, err := all.AwaitingApproval(ctx, org)
	if err != nil {
		return nil, err
	}

	file, err := all.AwaitingExport(ctx, org)
	if err != nil {
		return nil, err
	}

	result, err := all.AwaitingResult(ctx, org)
	if err != nil {
		return nil, err
	}

	e := Exception{
		Kind: PayoutWaiting, Level: Warning,
		Text: "Users wait for their money. Approve or reject what waits for approval, and export what is approved, under Settlement or with flexd payouts." +
			" Of what is in a payment file flexd payouts import reads the result; a file that was lost is written again, under Settlement or with flexd payouts export --again.",
	}

	e.addPayouts(approval, PayoutLate, "waiting for approval, the oldest since ")
	e.addPayouts(file, ExportLate, "approved and in no payment file, the oldest since ")
	e.addPayouts(result, ResultLate, "in a payment file and without a result, the oldest since ")
	if e.Count == 0 {
		return nil, nil
	}

	return []Exception{e}, nil
}

// addPayouts counts withdrawals of which one waits for so long, or for longer.
func (e *Exception) addPayouts(p store.WaitingCount, late time.Duration, how string) {
	if p.Count == 0 || p.Waits < late {
		return
	}

	if e.Count == 0 {
		e.Org = p.Org
	} else {
		e.Title += "; "
	}

	e.Count += p.Count
	e.Title += count(p.Count, "withdrawal") + " " + how + instantText(p.Oldest)
}

// trouble returns the failures that this process had lately with the database; nil for none.
func (s *Service) trouble() *store.Trouble {
	if s.Trouble == nil {
		return nil
	}
	return s.Trouble()
}

// databaseFailing finds that the database does not do its work, by the failures of this process.
func (s *Service) databaseFailing() []Exception {
	t := s.trouble()
	if t == nil {
		return nil
	}

	text := "Requests that need it are answered with 503, and clients repeat them. It goes on by itself once the cause ends; " +
		"this is listed for a quarter of an hour after it was last met."
	if t.Damaged {
		text = "Stop flexd, restore the newest good backup (flexd backup), and look at it with flexd verify. " +
			"This is listed until flexd is started again."
	}

	return []Exception{{
		Kind:  DatabaseFailing,
		Level: Critical,
		Count: 1,
		Title: fmt.Sprintf(
			"The database does not do its work: %s (since %s, last met at %s)",
			t.What,
			instantText(t.Since),
			instantText(t.At),
		),
		Text: text,
	}}
}

func (s *Service) stalePrices(ctx context.Context) ([]Exception, error) {
	if s.StalePrices == nil {
		return nil, nil
	}

	stale, err := s.StalePrices(ctx)
	var found []Exception
	for _, p := range stale {
		found = append(found, Exception{
			Kind:  PriceStale,
			Level: Critical,
			Count: 1,
			Title: "Prices of " + p.Source + " are not current",
			Text: p.Why +
				". Until then the last good prices are used: flexd prices fetch, or flexd prices import.",
		})
	}

	return found, err
}
