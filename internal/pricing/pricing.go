package pricing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Role says what a price is used for.
type Role string

// The roles.
const (
	Planning   Role = "planning"
	Contract   Role = "contract"
	Settlement Role = "settlement"
)

// Roles lists every role.
var Roles = []Role{Planning, Contract, Settlement}

// Kind says what sort of price a source gives.
type Kind string

// The kinds.
const (
	DayAhead  Kind = "day_ahead" // of an auction for the next day
	Index     Kind = "index"     // of trades close to delivery
	Imbalance Kind = "imbalance" // known after the half-hour
	Retail    Kind = "retail"    // what a supplier asks of a household
	File      Kind = "file"      // imported under any other name
	Invented  Kind = "invented"  // made up for a sandbox
)

// SandboxSource is the name of the source whose prices are made up.
const SandboxSource = "sandbox"

// beginnings are the first parts of the names that tell a source's kind. An operator names an
// imported file accordingly, for example retail:agile.
var beginnings = []struct {
	name string
	kind Kind
}{
	{"nordpool", DayAhead},
	{"elexon-mid", Index},
	{"elexon-system-price", Imbalance},
	{"imbalance", Imbalance},
	{"octopus", Retail},
	{"retail", Retail},
	{SandboxSource, Invented},
}

// KindOf returns the kind of a source by its name.
func KindOf(source string) Kind {
	head, _, _ := strings.Cut(source, ":")
	for _, b := range beginnings {
		if head == b.name || strings.HasPrefix(head, b.name+"-") {
			return b.kind
		}
	}

	return File
}

// Allowed returns why a source must not be chosen for a role, or nil.
func Allowed(role Role, source string, e flex.Environment) error {
	kind := KindOf(source)
	if kind == Invented && e != flex.Sandbox {
		return flex.Fail(
			flex.Invalid,
			"%s is a source of made-up prices, which count in a sandbox alone",
			source,
		)
	}

	if role == Planning {
		if kind == Imbalance {
			return flex.Fail(
				flex.Invalid,
				"%s cannot be the planning source: its prices are known only after the half-hour; "+
					"plan on a day-ahead source, or import a forecast under a name of its own",
				source,
			)
		}
		return nil
	}

	if kind == Retail {
		return flex.Fail(
			flex.Invalid,
			"%s cannot be the %s source: it is what a supplier asks of a household, and no market pays it",
			source,
			role,
		)
	}

	return nil
}

// Source is a source that has published prices.
type Source struct {
	Name  string
	Added time.Time // when it first did
}

// Choice is a source chosen for a role from an instant on, until the next choice for the same
// role. Without a source the role follows the rule again.
type Choice struct {
	Role   Role
	From   time.Time
	Source string
	SetAt  time.Time
}

// Selection is all that decides which source counts for an organisation.
type Selection struct {
	Environment flex.Environment
	Sources     []Source
	Choices     []Choice
}

// Chosen returns the source chosen for a role at an instant, or "" if the rule applies.
func (s *Selection) Chosen(role Role, at time.Time) string {
	var latest Choice
	for _, c := range s.Choices {
		if c.Role == role && !c.From.After(at) && !c.From.Before(latest.From) {
			latest = c
		}
	}

	return latest.Source
}

// SourcesAt returns the sources that count for a role at an instant: the chosen one, or those
// of the rule. Of several the latest publication counts. For settlement a contract source that
// was chosen goes before the settlement source.
func (s *Selection) SourcesAt(role Role, at time.Time) []string {
	if role == Settlement {
		if contract := s.Chosen(Contract, at); contract != "" {
			return []string{contract}
		}
	}

	if chosen := s.Chosen(role, at); chosen != "" {
		return []string{chosen}
	}
	if role == Contract {
		return nil
	}

	return s.byRule(role, at)
}

// byRule returns the sources of a role that nobody chose: those of the market, else those of
// the next kind that is there. A retail rate plans and never settles. In a sandbox the made-up
// prices fill what none of these covers.
//
// A source that was added later does not count for the time before, as long as there was
// another one then: what was settled on that stays as it is.
func (s *Selection) byRule(role Role, at time.Time) []string {
	order := [][]Kind{{DayAhead, Index, File}, {Retail}, {Imbalance}}
	if role == Settlement {
		order = [][]Kind{{DayAhead, Index, File}, {Imbalance}}
	}

	for _, early := range []bool{true, false} {
		for _, kinds := range order {
			names := s.named(kinds, at, early)
			if len(names) > 0 {
				return append(names, s.invented()...)
			}
		}
	}

	return s.invented()
}

// named returns the sources of some kinds, by name: all, or those that were there by then.
func (s *Selection) named(
	kinds []Kind,
	at time.Time,
	early bool,
) []string {
	var names []string
	for _, source := range s.Sources {
		late := early && source.Added.After(at)
		if !late && slices.Contains(kinds, KindOf(source.Name)) {
			names = append(names, source.Name)
		}
	}

	return names
}

func (s *Selection) invented() []string {
	if s.Environment != flex.Sandbox {
		return nil
	}
	return s.named([]Kind{Invented}, time.Time{}, false)
}

// SourceSpan is a time through which the same sources count.
type SourceSpan struct {
	flex.Span
	Sources []string
}

// Stretches cuts a span where the sources of a role change. No stretch has the same sources as
// the one before it.
func (s *Selection) Stretches(role Role, span flex.Span) []SourceSpan {
	cuts := []time.Time{span.From}
	for _, c := range s.Choices {
		cuts = append(cuts, c.From)
	}

	for _, source := range s.Sources {
		cuts = append(cuts, source.Added)
	}

	cuts = slices.DeleteFunc(cuts, func(at time.Time) bool {
		return at.Before(span.From) || !at.Before(span.To)
	})
	slices.SortFunc(cuts, time.Time.Compare)

	var out []SourceSpan

	for _, at := range cuts {
		sources := s.SourcesAt(role, at)

		last := len(out) - 1
		if last >= 0 && slices.Equal(out[last].Sources, sources) {
			continue
		}

		if last >= 0 {
			out[last].To = at
		}

		out = append(out, SourceSpan{flex.Span{From: at, To: span.To}, sources})
	}

	return out
}

// Doubts says what an operator should look at: roles that nobody chose although several
// sources could have been meant, and a settlement without any source.
func (s *Selection) Doubts(at time.Time) []string {
	if len(s.Sources) == 0 {
		return nil
	}

	var doubts []string
	for _, role := range []Role{Planning, Settlement} {
		if s.Chosen(role, at) != "" ||
			role == Settlement && s.Chosen(Contract, at) != "" {
			continue
		}

		sources := slices.DeleteFunc(s.byRule(role, at), func(name string) bool {
			return KindOf(name) == Invented
		})

		if len(sources) > 1 {
			doubts = append(
				doubts,
				fmt.Sprintf(
					"no %s source is chosen, and the latest publication of %s counts",
					role,
					strings.Join(sources, ", "),
				),
			)
		} else if len(sources) == 0 && len(s.byRule(role, at)) == 0 {
			doubts = append(
				doubts,
				fmt.Sprintf(
					"there is no %s source: nothing is priced for it",
					role,
				),
			)
		}
	}

	return doubts
}
