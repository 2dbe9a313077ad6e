package operations

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// AlertRule says from which count on, and after how long, a kind of exception fires an alert.
type AlertRule struct {
	Kind      Kind
	Org       flex.OrgID // zero for all
	Enabled   bool
	Threshold int           // of what the kind counts
	For       time.Duration // that it must last
	// whether it is the default, which nobody changed
	Own bool
}

// defaultRules are the rules of kinds for which an operator has set none. An exception that an operator can mend fires.
// Those of some kinds are only listed: a need that no time or off-peak hour can meet is the user's to change, a site without
// consent is no fault, an asset is excluded on purpose, single chargers are offline all the time, only households answer to a product, and
// an alert that no route gets has nobody to be sent to.
var defaultRules = map[Kind]AlertRule{
	Halted:           {Enabled: true},
	Refused:          {Enabled: true, For: 5 * time.Minute},
	DispatchRefused:  {Enabled: true, For: 5 * time.Minute},
	Waiting:          {Enabled: true, For: 5 * time.Minute},
	EndpointDisabled: {Enabled: true},
	EndpointMissing:  {Enabled: true, For: 5 * time.Minute},
	ShortTime:        {For: 15 * time.Minute},
	ShortOffPeak:     {For: 15 * time.Minute},
	ShortHeadroom:    {Enabled: true, For: 15 * time.Minute},
	NotReleased:      {Enabled: true, For: 15 * time.Minute},
	OrderUnmet:       {Enabled: true},
	LimitLinkLost:    {Enabled: true},
	LimitExceeded:    {Enabled: true},
	OpenADRSilent:    {Enabled: true},
	DatabaseFailing:  {Enabled: true},
	JobFailed:        {Enabled: true, For: 5 * time.Minute},
	WorkFailed:       {Enabled: true, For: 15 * time.Minute},
	PriceStale:       {Enabled: true, For: 30 * time.Minute},
	PlanRefused:      {Enabled: true},
	SiteCutShort:     {For: time.Hour},
	Unplanned:        {For: time.Hour},
	Excluded:         {For: time.Hour},
	TankCold:         {For: time.Hour},
	RoomCold:         {For: time.Hour},
	Offline:          {For: 15 * time.Minute},
	ReadingsMissing:  {Enabled: true, For: time.Hour},
	ChargeMissing:    {Enabled: true, For: time.Hour},
	ReadingsHeld:     {Enabled: true, For: time.Hour},
	PayoutWaiting:    {Enabled: true},
	AlertUnrouted:    {For: time.Hour},

	InstructionUncalled: {Enabled: true, For: time.Minute},
	ProductUnanswered:   {For: time.Hour},
}

// Bounds of a rule.
const (
	thresholdMax = 1_000_000_000
	alertForMax  = 7 * 24 * time.Hour
)

// AlertRules returns the rules: of each kind the default or the one that an operator set in its place,
// then those of single organisations.
func (s *Service) AlertRules(ctx context.Context) ([]AlertRule, error) {
	var rules []AlertRule
	var err error
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		rules, err = alertRules(ctx, all)
		return err
	})

	return rules, err
}

func alertRules(ctx context.Context, all *store.All) ([]AlertRule, error) {
	set, err := all.AlertRules(ctx)
	if err != nil {
		return nil, err
	}

	rules := make([]AlertRule, 0, len(Kinds)+len(set))
	for _, k := range Kinds {
		r := defaultRules[k]
		r.Kind = k
		r.Threshold = 1
		r.Own = true
		rules = append(rules, r)
	}

	for _, r := range set {
		kept := AlertRule{
			Kind:      Kind(r.Kind),
			Org:       r.Org,
			Enabled:   r.Enabled,
			Threshold: r.Threshold,
			For:       r.For,
		}

		switch i := slices.Index(Kinds, kept.Kind); {
		case i < 0: // of a release that knew more
		case kept.Org.IsZero():
			rules[i] = kept
		default:
			rules = append(rules, kept)
		}
	}

	return rules, nil
}

// SetAlertRule keeps a rule in place of the one before; Malformed if it is out of bounds.
func (s *Service) SetAlertRule(ctx context.Context, r AlertRule) error {
	if !slices.Contains(Kinds, r.Kind) {
		return flex.Fail(
			flex.Malformed,
			"%q is no kind of exception: there are %v",
			r.Kind,
			Kinds,
		)
	}

	if r.Threshold < 1 || r.Threshold > thresholdMax {
		return flex.Fail(flex.Malformed, "a threshold is 1 to %d", thresholdMax)
	}

	if r.For < 0 || r.For > alertForMax {
		return flex.Fail(
			flex.Malformed,
			"an exception can be asked to last for up to %v",
			alertForMax,
		)
	}

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		if !r.Org.IsZero() {
			if _, err := all.For(ctx, r.Org); err != nil {
				return err
			}
		}

		return all.PutAlertRule(ctx, store.AlertRule{
			Kind:      string(r.Kind),
			Org:       r.Org,
			Enabled:   r.Enabled,
			Threshold: r.Threshold,
			For:       r.For,
		})
	})
}
