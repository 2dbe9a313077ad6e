package api

import (
	"slices"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// Who may call an operation, in addition to the interface's roles.
const (
	Public flex.Role = "public" // anyone, without a token
	Anyone flex.Role = "anyone" // any valid token
)

// Route is one operation of the surface.
type Route struct {
	Method  string
	Pattern string
	Role    flex.Role // that the token needs, or Public or Anyone
	// whether a component token may call it for its own site
	Component bool
	Limit     int64 // bytes of the body; 0 means that none is read
	// whether faults are shown as one text, {"detail": "…"}
	Flat bool
	// whether a request that cannot be acted on is a 422 here, for want of a 400
	No400 bool
	// whether the same request has the same answer when it is run again, so that none is stored
	Repeatable bool
	// of these, whether a repeated request is done again: each answer is a new token
	NewToken bool
	// whether it commits any number of transactions: a repeat finds what they did, and is not
	// counted against them
	InParts bool
	// whether the interface's description leaves it out
	Unlisted bool
	// whether it answers anybody with a page of the documentation
	Document bool
	// whether the answer contains a secret that is shown once, and is not stored
	Secret bool

	// what the description says of it; nil if it leaves it out, as it does documents
	Operation *Operation

	handle func(*Server, *request) (answer, error)
}

// Routes returns the whole surface, in the order of its description.
func Routes() []Route { return slices.Clone(surface) }

// Short names, so that a route fits on its line.
const (
	toRead, toWrite, toLook = flex.EntityRead, flex.EntityWrite, flex.Lookup
	mib, kib4               = wire.MaxBody, wire.MaxForm
)

// surface is made of the groups of operations, each in a file of its own.
var surface = slices.Concat(
	authRoutes,
	metersRoutes,
	sitesRoutes,
	householdRoutes,
	enrolmentsRoutes,
	assetsRoutes,
	eventsRoutes,
	schedulesRoutes,
	pricesRoutes,
	readingsRoutes,
	rewardsRoutes,
	examplesRoutes,
	deliveriesRoutes,
	dischargeRoutes,
	capsRoutes,
	gridRoutes,
	instructionsRoutes,
	offersRoutes,
	limitsRoutes,
	productsRoutes,
	programsRoutes,
	operationsRoutes,
	selectionRoutes,
	clockRoutes,
	serviceRoutes,
)
