package console

import (
	"slices"
	"strings"
	"time"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/wire"
)

// fleetPage is the fleet as it is now.
type fleetPage struct {
	*operations.FleetView
	Export    Export
	Query     string
	org       flex.OrgID // whose fleet is asked for, zero for all
	isPartial bool       // the operator is one of some organisations
}

// Good returns the text for a page without exceptions. It does not mention jobs to an operator
// of some organisations, to whom failed jobs are not shown.
func (p *fleetPage) Good() string {
	const all = "Nothing needs looking at: every need can be met, every push was accepted, "
	if p.isPartial {
		return all + "prices are current."
	}

	return all + "every background job ran, prices are current."
}

// UnreadKinds names the kinds of exceptions that could not be read; "" if all could.
func (p *fleetPage) UnreadKinds() string {
	return strings.Join(contract.Unread(p.Unread), ", ")
}

// See is the page that lists the exceptions that were counted; "" if there is none.
func (p *fleetPage) See(e operations.Exception) string {
	if p.isPartial && e.Kind == operations.WorkFailed { // the engine's page is refused to them
		return ""
	}

	org := p.org
	if org.IsZero() && e.Kind != operations.ReadingsHeld { // whose page lists those of all
		org = e.Org
	}

	return seePath(e.Kind, org)
}

// Idle reports whether nothing is planned in any half-hour that is shown.
func (p *fleetPage) Idle() bool {
	for _, l := range p.Lines {
		l.Start = time.Time{}
		if l != (operations.Line{}) {
			return false
		}
	}

	return true
}

// fleetNow answers the fleet page, its numbers and its stream.
func (s *Server) fleetNow(r *request) (view, error) {
	p, err := s.fleetPage(r)
	if err != nil {
		return view{}, err
	}

	t := &table{
		Name:    "fleet",
		Columns: []string{"start", "planned_kw", "without_flexd_kw", "lowest_kw", "highest_kw", "battery_dispatch_kw", "battery_kw", "heat_kw", "battery_lowest_kw", "battery_highest_kw"},
	}

	for _, l := range p.Lines {
		t.add(
			l.Start,
			l.Planned,
			l.Unmoved,
			l.Lowest,
			l.Highest,
			l.Ordered,
			l.Batteries,
			l.Heat,
			l.BatteriesLowest,
			l.BatteriesHighest,
		)
	}

	v := view{
		page:   "fleet",
		title:  "Fleet now",
		data:   p,
		table:  t,
		record: p.numbers(),
	}

	if strings.HasSuffix(r.URL.Path, ".json") {
		v.json = v.record
	}

	return v, nil
}

// fleetNumbers is the page's content as JSON.
type fleetNumbers struct {
	wire.FleetView
	Exceptions []exceptionNumbers `json:"exceptions"`
}

// exceptionNumbers is an exception, with the page that lists its items.
type exceptionNumbers struct {
	wire.Exception
	See string `json:"see,omitempty"`
}

// seePath returns the page that lists what an exception counts, or "" if there is none. The
// page is that of one organisation, or of all if org is zero.
func seePath(k operations.Kind, org flex.OrgID) string {
	path := seePaths[k]
	if org.IsZero() || slices.Contains(anonymous, k) {
		return path
	}

	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}

	return path + join + "org=" + org.String()
}

// anonymous are the exceptions that are no organisation's, or whose page lists all.
var anonymous = []operations.Kind{
	operations.Halted,
	operations.DatabaseFailing,
	operations.JobFailed,
	operations.WorkFailed,
	operations.PriceStale,
	operations.AlertUnrouted,
}

var seePaths = map[operations.Kind]string{
	operations.Halted:           "/console/safety",
	operations.Refused:          "/console/assets?state=refused",
	operations.DispatchRefused:  causePath(operations.DispatchRefused),
	operations.Unplanned:        "/console/assets?state=unplanned",
	operations.ShortTime:        causePath(operations.ShortTime),
	operations.ShortOffPeak:     causePath(operations.ShortOffPeak),
	operations.ShortHeadroom:    causePath(operations.ShortHeadroom),
	operations.Excluded:         causePath(operations.Excluded),
	operations.TankCold:         causePath(operations.TankCold),
	operations.RoomCold:         causePath(operations.RoomCold),
	operations.PlanRefused:      causePath(operations.PlanRefused),
	operations.SiteCutShort:     causePath(operations.SiteCutShort),
	operations.Waiting:          "/console/deliveries?late=yes",
	operations.EndpointDisabled: "/console/deliveries",
	operations.EndpointMissing:  "/console/developer",
	operations.NotReleased:      causePath(operations.NotReleased),
	operations.OrderUnmet:       programsPath,
	operations.LimitLinkLost:    "/console/limits",
	operations.LimitExceeded:    "/console/limits",
	operations.OpenADRSilent:    programsPath,
	operations.DatabaseFailing:  "/console/engine",
	operations.JobFailed:        "/console/engine",
	operations.WorkFailed:       "/console/engine",
	operations.PriceStale:       "/console/prices",
	operations.Offline:          causePath(operations.Offline),
	operations.ReadingsMissing:  causePath(operations.ReadingsMissing),
	operations.ChargeMissing:    causePath(operations.ChargeMissing),
	operations.ReadingsHeld:     "/console/readings/held",
	operations.PayoutWaiting:    "/console/settlement?status=", // of every status: some may be approved
	operations.AlertUnrouted:    "/console/alerts",

	operations.InstructionUncalled: instructionsPath,
	operations.ProductUnanswered:   productsPath,
}

// causePath is the list of all assets of an exception.
func causePath(k operations.Kind) string {
	return "/console/assets?cause=" + string(k)
}

func (p *fleetPage) numbers() fleetNumbers {
	n := fleetNumbers{
		FleetView:  contract.FleetView(p.FleetView),
		Exceptions: []exceptionNumbers{},
	}

	for i, e := range n.FleetView.Exceptions {
		n.Exceptions = append(n.Exceptions, exceptionNumbers{
			e,
			p.See(p.Exceptions[i]),
		})
	}

	return n
}

func (s *Server) fleetPage(r *request) (*fleetPage, error) {
	if err := r.onlyFilters("org"); err != nil {
		return nil, err
	}

	var org flex.OrgID
	if err := readFilter(
		&org,
		r.URL.Query().Get("org"),
		"organisation",
	); err != nil {
		return nil, err
	}

	v, err := s.Operations.FleetView(r.Context(), org)

	return &fleetPage{v, r.exports(), r.URL.RawQuery, org, r.operator.SomeOrgs}, err
}
