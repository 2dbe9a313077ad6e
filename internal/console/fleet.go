package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/operations"
)

// fleetPage is the fleet as it is now.
type fleetPage struct {
	Orgs       []flex.Org
	Org        flex.OrgID // zero for all
	Alone      bool       // clocks differ, so one organisation is shown at a time
	Chosen     bool       // whether the organisation was asked for
	Now        time.Time
	Sites      int
	Assets     int
	Plugged    int
	Charging   int
	Short      int
	Unplanned  int
	Drawing    flex.Watts
	Lines      []operations.Line
	Exceptions []operations.Exception
	Export     Export
	Query      string
}

// fleetNow answers the fleet page, its numbers and its stream.
func (s *Server) fleetNow(r *request) (view, error) {
	p, err := s.fleetPage(r)
	if err != nil {
		return view{}, err
	}

	t := &table{Name: "fleet", Columns: []string{"start", "planned_kw", "without_flexd_kw", "lowest_kw", "highest_kw"}}
	for _, l := range p.Lines {
		t.add(l.Start, l.Planned, l.Unmoved, l.Lowest, l.Highest)
	}

	v := view{page: "fleet", title: "Fleet now", data: p, table: t, record: p.numbers()}
	if strings.HasSuffix(r.URL.Path, ".json") {
		v.json = v.record
	}

	return v, nil
}

// fleetNumbers is what the page shows, for programs.
type fleetNumbers struct {
	Now       time.Time         `json:"now"`
	Sites     int               `json:"sites"`
	Assets    int               `json:"assets"`
	Plugged   int               `json:"plugged_in"`
	Charging  int               `json:"charging"`
	Short     int               `json:"short"`
	Unplanned int               `json:"unplanned"`
	DrawingKW float64           `json:"drawing_kw"`
	HalfHours []operations.Line `json:"half_hours"`

	Exceptions []exceptionNumbers `json:"exceptions"`
}

// exceptionNumbers is an exception, for programs.
type exceptionNumbers struct {
	Kind      operations.Kind  `json:"kind"`
	Level     operations.Level `json:"level"`
	Count     int              `json:"count"`
	EnergyKWh float64          `json:"energy_kwh,omitempty"`
	Title     string           `json:"title"`
	Text      string           `json:"text"`
	Assets    []assetNumbers   `json:"assets,omitempty"` // examples
	More      int              `json:"more,omitempty"`   // beyond them
	See       string           `json:"see,omitempty"`    // the page that lists them
}

type assetNumbers struct {
	ID   string `json:"asset_id"`
	Name string `json:"external_id"`
}

// seePath is the page where the things that an exception counts are listed, "" if there is none.
func seePath(k operations.Kind) string { return seePaths[k] }

var seePaths = map[operations.Kind]string{
	operations.Halted:           "/console/safety",
	operations.Refused:          "/console/deliveries?state=" + string(delivery.Refused),
	operations.Waiting:          "/console/deliveries?state=" + string(delivery.Pending),
	operations.EndpointDisabled: "/console/deliveries",
	operations.EndpointMissing:  "/console/developer",
	operations.NotReleased:      "/console/deliveries?endpoint=dispatch",
	operations.OrderUnmet:       "/console/instructions",
	operations.JobFailed:        "/console/engine",
	operations.PriceStale:       "/console/prices",
	operations.Offline:          "/console/deliveries",
	operations.ReadingsMissing:  "/console/readings",
	operations.ReadingsHeld:     "/console/readings/held",
	operations.PayoutWaiting:    "/console/settlement?status=" + string(ledger.PendingApproval),
}

func (p *fleetPage) numbers() fleetNumbers {
	n := fleetNumbers{
		Now: p.Now, Sites: p.Sites, Assets: p.Assets, Plugged: p.Plugged, Charging: p.Charging,
		Short: p.Short, Unplanned: p.Unplanned, DrawingKW: p.Drawing.KW(), HalfHours: p.Lines, Exceptions: []exceptionNumbers{},
	}

	for _, e := range p.Exceptions {
		x := exceptionNumbers{
			Kind: e.Kind, Level: e.Level, Count: e.Count, EnergyKWh: e.Energy.KWh(), Title: e.Title, Text: e.Text, More: e.More(), See: seePath(e.Kind),
		}
		for _, a := range e.Assets {
			x.Assets = append(x.Assets, assetNumbers{a.ID.String(), a.ExternalID})
		}
		n.Exceptions = append(n.Exceptions, x)
	}

	return n
}

func (s *Server) fleetPage(r *request) (*fleetPage, error) {
	fleet, err := s.Operations.Look(r.Context())
	if err != nil {
		return nil, err
	}

	p := &fleetPage{Orgs: fleet.Orgs, Export: r.exports(), Query: r.URL.RawQuery}
	if err := p.choose(r, fleet); err != nil {
		return nil, err
	}

	for _, o := range fleet.Orgs {
		if p.Org.IsZero() || o.ID == p.Org {
			p.Sites += fleet.Counts[o.ID].Sites
			p.Assets += fleet.Counts[o.ID].Assets
		}
	}

	sum := fleet.Outlook(p.Org)
	p.Now = sum.Now()
	p.Plugged = sum.Plugged()
	p.Charging = sum.Charging()
	p.Drawing = sum.Drawing()
	p.Short = sum.Short()
	p.Unplanned = sum.Unplanned()
	p.Lines = sum.Lines()

	// The exceptions of flexd itself are those of every organisation's operator.
	p.Exceptions, err = s.Operations.Exceptions(r.Context(), p.shown())
	return p, err
}

// shown is the organisation whose exceptions are listed: the one chosen by hand. Where clocks
// differ the plot is of one organisation, and the list is still of all.
func (p *fleetPage) shown() flex.OrgID {
	if p.Alone && !p.Chosen {
		return flex.OrgID{}
	}
	return p.Org
}

// choose takes the organisation of the filter. Where clocks differ there is no common now,
// and the first organisation is shown if none was chosen.
func (p *fleetPage) choose(r *request, v *operations.Fleet) error {
	if text := r.URL.Query().Get("org"); text != "" {
		if err := readID(&p.Org, text, "organisation"); err != nil {
			return err
		}
		if v.ByOrg[p.Org] == nil {
			return flex.Fail(flex.NotFound, "there is no organisation %s", p.Org)
		}

		p.Chosen = true
	}

	for _, o := range v.Orgs {
		p.Alone = p.Alone || o.ClockOffset != v.Orgs[0].ClockOffset
	}

	if p.Alone && p.Org.IsZero() {
		most := slices.MaxFunc(v.Orgs, func(a, b flex.Org) int { return cmp.Compare(v.ByOrg[a.ID].Plugged(), v.ByOrg[b.ID].Plugged()) })
		p.Org = most.ID
	}

	return nil
}
