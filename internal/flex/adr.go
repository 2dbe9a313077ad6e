package flex

import "time"

// ADRKind is a kind of OpenADR object, as OpenADR writes it.
type ADRKind string

// The kinds of OpenADR object.
const (
	ADRProgram      ADRKind = "PROGRAM"
	ADREvent        ADRKind = "EVENT"
	ADRReport       ADRKind = "REPORT"
	ADRSubscription ADRKind = "SUBSCRIPTION"
	ADRVEN          ADRKind = "VEN"
	ADRResource     ADRKind = "RESOURCE"
)

// ADRObject is an OpenADR object. What the store does not look for is in its document alone.
type ADRObject struct {
	ID         ADRObjectID
	Kind       ADRKind
	Name       string
	Client     string
	ClientName string
	Program    ADRObjectID
	Event      ADRObjectID
	VEN        ADRObjectID
	Objects    []string // that a subscription is for
	Targets    []string
	// of an event; zero if it is not known, or never
	EndsAt   time.Time
	Document string // JSON
	// of a subscription, by the webhook's URL
	Tokens     map[string]Secret
	CreatedAt  time.Time
	ModifiedAt time.Time
}

// ADRBinding says that the events of a program are for the organisation's own fleet.
type ADRBinding struct {
	Program ADRObjectID
	Scope   Scope
	Service string
	Price   Price // that its instructions pay; zero if it was not said
	Kind    ADRBindingKind
	Simple  []Watts // the change at each level of SIMPLE from 1 on
	Who     string
	MadeAt  time.Time
}

// ADRSearch says which objects are looked for. What is left out does not narrow the search.
type ADRSearch struct {
	Kind      ADRKind
	VisibleTo string // a VEN's client: what it may read alone
	ID        ADRObjectID
	Program   ADRObjectID
	Event     ADRObjectID
	VEN       ADRObjectID

	Name       string
	Client     string
	ClientName string

	Targets []string // objects with one of them at least
	Objects []string // subscriptions for one of them at least
	Active  bool     // events that are not over
	Skip    int
	Limit   int // 0: all
}

// ADRBindingKind says what the events of a bound program become.
type ADRBindingKind string

// The kinds of binding.
const (
	ADRInstruction ADRBindingKind = "instruction"
	// a limit of what a constraint group draws, which its cap keeps
	ADRImportLimit ADRBindingKind = "import_limit"
	// a limit of what a constraint group draws, or gives to the grid
	ADRLimit ADRBindingKind = "limit"
)

// Limits reports whether events become limits of a constraint group.
func (k ADRBindingKind) Limits() bool {
	return k == ADRImportLimit || k == ADRLimit
}
