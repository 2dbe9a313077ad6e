package console

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/bridge"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/market"
	"flexd/internal/operations"
	"flexd/internal/product"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/selection"
	"flexd/internal/web"
	"flexd/internal/worker"
)

// Root is the path that the console is mounted under.
const Root = "/console"

// Server answers the console's pages. Set its fields before Handler is called.
type Server struct {
	Access   *access.Service
	Registry *registry.Service
	Control  *control.Service
	Push     *delivery.Service
	Reading  *reading.Service
	Market   *market.Service
	Reward   *reward.Service

	Operations *operations.Service
	Selection  *selection.Service
	Products   *product.Service
	Grid       *grid.Service
	ADR        *adr.Service

	Environment flex.Environment
	// Cell is the name of the database whose pages these are, among Cells; empty for the only
	// one.
	Cell  string
	Cells []string

	Log *slog.Logger // nil means the default logger

	// TrustedProxies are the addresses whose X-Forwarded-For is believed.
	TrustedProxies web.Proxies
	// PublicURL is the address at which operators reach flexd. If it begins with https,
	// session cookies are sent over TLS only, whatever a proxy says about a request.
	PublicURL string

	// Bridge is where chargers without a platform are called; nil for nowhere.
	Bridge *bridge.Client

	// TwoStep has every operator set up a code for their logins before they see anything else.
	TwoStep bool

	// ResumeByTwo has two people end every halt that is begun in the console.
	ResumeByTwo bool

	// Clock advances sandbox clocks; nil where none may be advanced.
	Clock Clock
	// Jobs returns the background jobs, nil if there are none.
	Jobs func() []*worker.Worker
	// Done ends the streams when the server is to stop; nil for never.
	Done <-chan struct{}

	streams atomic.Int64
	once    sync.Once
	mux     *web.Mux
	handler http.Handler
}

// route is one page or action of the console.
type route struct {
	pattern string // method and path
	public  bool   // whether it is open to whoever is not logged in
	// what the operator's role must allow; See if empty
	needs access.Permission
	// whether it asks again who the operator is, whatever it needs
	confirm bool
	// whether it shows or changes what is of all organisations
	unparted bool
	// the name under which the audit log records a view of this page, which shows persons; for
	// a site, with its id
	sees   string
	handle func(*Server, *request) (view, error)
}

var surface = []route{
	// session.go
	{pattern: "GET /console/login", public: true, handle: (*Server).loginPage},
	{pattern: "POST /console/login", public: true, handle: (*Server).login},
	{pattern: "POST /console/login/code", public: true, handle: (*Server).loginCode},
	{pattern: "POST /console/login/passkey", public: true, handle: (*Server).loginPasskey},
	{pattern: "POST /console/logout", needs: access.See, handle: (*Server).logout},

	// cell.go
	{pattern: "POST /console/cell", needs: access.See, handle: (*Server).chooseCell},

	// signin.go
	{pattern: "GET " + signInPath, public: true, handle: (*Server).beginSignIn},
	{pattern: "GET " + CallbackPath, public: true, handle: (*Server).finishSignIn},

	// fleet.go, live.go
	{pattern: "GET /console/fleet", handle: (*Server).fleetNow},
	{pattern: "GET /console/fleet.csv", handle: (*Server).fleetNow},
	{pattern: "GET /console/fleet.json", handle: (*Server).fleetNow},
	{pattern: "GET /console/fleet/live", handle: (*Server).fleetLive},

	// past.go
	{pattern: "GET /console/past", handle: (*Server).past},
	{pattern: "GET /console/past.csv", handle: (*Server).past},
	{pattern: "GET /console/past.json", handle: (*Server).past},
	{pattern: "GET /console/past/unready", handle: (*Server).unready},
	{pattern: "GET /console/past/unready.csv", handle: (*Server).unready},
	{pattern: "GET /console/past/unready.json", handle: (*Server).unready},
	{pattern: "GET /console/readings/fleet", handle: (*Server).readingsHeat},
	{pattern: "GET /console/readings/fleet.csv", handle: (*Server).readingsHeat},
	{pattern: "GET /console/readings/fleet.json", handle: (*Server).readingsHeat},

	// alerts.go
	{pattern: "GET /console/alerts", handle: (*Server).alerts},
	{pattern: "GET /console/alerts.csv", handle: (*Server).alerts},
	{pattern: "GET /console/alerts.json", handle: (*Server).alerts},
	{
		pattern: "POST /console/alerts/{id}/acknowledge",
		needs:   access.Operate,
		handle:  (*Server).acknowledge,
	},
	{pattern: "POST /console/alerts/test", needs: access.Operate, unparted: true, handle: (*Server).testRoute},

	// asset.go, why.go
	{pattern: "GET /console/assets", handle: (*Server).assets},
	{pattern: "GET /console/assets.csv", handle: (*Server).assets},
	{pattern: "GET /console/assets.json", handle: (*Server).assets},
	{pattern: "GET /console/assets/{id}", handle: (*Server).asset},
	{pattern: "GET /console/assets/{id}/series.json", handle: (*Server).assetSeries},
	{pattern: "GET /console/assets/{id}/why", handle: (*Server).explainSchedule},
	{pattern: "GET /console/assets/{id}/what-if.json", handle: (*Server).assetWhatIf},

	// acts.go
	{pattern: "POST /console/assets/selection/preview", needs: access.Operate, handle: (*Server).previewAct},
	{pattern: "POST /console/assets/selection", needs: access.Operate, handle: (*Server).doAct},

	// assetrate.go
	{pattern: "POST /console/assets/{id}/rate", needs: access.Operate, handle: (*Server).changeRate},

	// charger.go
	{pattern: "GET /console/assets/{id}/charger", handle: (*Server).charger},
	{pattern: "POST /console/assets/{id}/charger", needs: access.Operate, handle: (*Server).callCharger},

	// site.go
	{pattern: "GET /console/sites/{id}", sees: "see site", handle: (*Server).site},
	{pattern: "GET /console/sites/{id}/plan.json", handle: (*Server).siteSeries},

	// supply.go
	{pattern: "POST /console/sites/{id}/supply", needs: access.Operate, handle: (*Server).setSupply},
	{pattern: "POST /console/sites/{id}/calls", needs: access.Operate, handle: (*Server).setCalls},
	{pattern: "POST /console/assets/{id}/power", needs: access.Operate, handle: (*Server).setPower},

	// consent.go
	{
		pattern: "POST /console/sites/{id}/consent/withdraw",
		needs:   access.Operate,
		handle:  (*Server).withdrawConsent,
	},

	// statement.go
	{pattern: "GET /console/sites/{id}/statement", sees: "see statement", handle: (*Server).statement},
	{pattern: "GET /console/sites/{id}/statement.csv", sees: "see statement", handle: (*Server).statement},
	{pattern: "GET /console/sites/{id}/statement.json", sees: "see statement", handle: (*Server).statement},

	// deliveries.go
	{pattern: "GET /console/deliveries", handle: (*Server).deliveries},
	{pattern: "GET /console/deliveries.csv", handle: (*Server).deliveries},
	{pattern: "GET /console/deliveries.json", handle: (*Server).deliveries},
	{pattern: "GET /console/deliveries/{id}", handle: (*Server).delivery},
	{pattern: "POST /console/deliveries/{id}/replay", needs: access.Operate, handle: (*Server).replay},
	{
		pattern: "POST /console/endpoints/{org}/{name}/{act}",
		needs:   access.Administer,
		handle:  (*Server).endpointAct,
	},

	// prices.go
	{pattern: "GET /console/prices", handle: (*Server).prices},
	{pattern: "GET /console/prices.csv", handle: (*Server).prices},
	{pattern: "GET /console/prices.json", handle: (*Server).prices},

	// settlement.go
	{pattern: "GET /console/settlement", handle: (*Server).settlement},
	{pattern: "GET /console/settlement.csv", handle: (*Server).settlement},
	{pattern: "GET /console/settlement.json", handle: (*Server).settlement},
	{pattern: "GET /console/settlement/withdrawals.csv", handle: (*Server).withdrawals},
	{pattern: "GET /console/settlement/withdrawals.json", handle: (*Server).withdrawals},
	// moneylist.go
	{pattern: "GET /console/settlement/payment-files.csv", handle: (*Server).paymentFiles},
	{pattern: "GET /console/settlement/payment-files.json", handle: (*Server).paymentFiles},
	{pattern: "GET /console/settlement/runs.csv", handle: (*Server).runs},
	{pattern: "GET /console/settlement/runs.json", handle: (*Server).runs},
	{pattern: "GET /console/settlement/market-money.csv", handle: (*Server).marketMoney},
	{pattern: "GET /console/settlement/market-money.json", handle: (*Server).marketMoney},
	{pattern: "GET /console/settlement/books.csv", handle: (*Server).books},
	{pattern: "GET /console/settlement/books.json", handle: (*Server).books},

	{pattern: "GET /console/settlement/compare", handle: (*Server).compareRuns},
	{pattern: "GET /console/settlement/compare.csv", handle: (*Server).compareRuns},
	{pattern: "GET /console/settlement/compare.json", handle: (*Server).compareRuns},
	{
		pattern: "POST /console/settlement/{org}/withdrawals/{id}/override",
		needs:   access.Pay,
		handle:  (*Server).overrideName,
	},
	{
		pattern: "POST /console/settlement/{org}/selection/preview",
		needs:   access.Pay,
		handle:  (*Server).previewSelection,
	},
	{
		pattern: "POST /console/settlement/{org}/selection",
		needs:   access.Pay,
		handle:  (*Server).approveSelection,
	},
	{pattern: "POST /console/settlement/{org}/again", needs: access.Pay, handle: (*Server).resettle},
	{pattern: "POST /console/settlement/{org}/payments", needs: access.Pay, handle: (*Server).payments},
	{
		pattern: "POST /console/settlement/{org}/withdrawals/{id}/{to}",
		needs:   access.Pay,
		handle:  (*Server).decide,
	},
	{pattern: "GET /console/flex-events/{id}", handle: (*Server).flexEvent},
	{pattern: "GET /console/flex-events/{id}/periods.csv", handle: (*Server).flexEvent},
	{pattern: "GET /console/flex-events/{id}/periods.json", handle: (*Server).flexEvent},

	// terms.go
	{pattern: "GET /console/settlement/terms", handle: (*Server).terms},
	{pattern: "GET /console/settlement/terms.csv", handle: (*Server).terms},
	{pattern: "GET /console/settlement/terms.json", handle: (*Server).terms},
	{pattern: "POST /console/settlement/{org}/terms/preview", needs: access.See, handle: (*Server).previewTerm},
	{pattern: "POST /console/settlement/{org}/terms", needs: access.Pay, handle: (*Server).setTerm},

	// readings.go
	{pattern: "GET /console/readings", handle: (*Server).readings},
	{pattern: "GET /console/readings.csv", handle: (*Server).readings},
	{pattern: "GET /console/readings.json", handle: (*Server).readings},

	// held.go
	{pattern: "GET /console/readings/held", handle: (*Server).heldReadings},
	{pattern: "GET /console/readings/held.csv", handle: (*Server).heldReadings},
	{pattern: "GET /console/readings/held.json", handle: (*Server).heldReadings},
	{pattern: "GET /console/readings/held/{id}", handle: (*Server).heldReading},
	{pattern: "POST /console/readings/held/{id}/{to}", needs: access.Operate, handle: (*Server).decideHeld},

	// engine.go
	{pattern: "GET /console/engine", unparted: true, handle: (*Server).engine},
	{pattern: "GET /console/engine.csv", unparted: true, handle: (*Server).engine},
	{pattern: "GET /console/engine.json", unparted: true, handle: (*Server).engine},
	{pattern: "GET /console/engine/jobs.csv", unparted: true, handle: (*Server).jobs},
	{pattern: "GET /console/engine/jobs.json", unparted: true, handle: (*Server).jobs},

	// developer.go
	{pattern: "GET /console/developer", handle: (*Server).developer},
	{pattern: "GET /console/developer.csv", handle: (*Server).developer},
	{pattern: "GET /console/developer.json", handle: (*Server).developer},
	{pattern: "POST /console/developer/{org}/clock", needs: access.Operate, handle: (*Server).advance},
	{pattern: "POST /console/developer/{org}/plug/{way}", needs: access.Operate, handle: (*Server).plug},
	{
		pattern: "POST /console/developer/{org}/credentials",
		needs:   access.Administer,
		handle:  (*Server).addCredential,
	},
	{
		pattern: "POST /console/developer/{org}/credentials/bind",
		needs:   access.Administer,
		handle:  (*Server).bindCredential,
	},
	{
		pattern: "POST /console/developer/{org}/credentials/revoke",
		needs:   access.Administer,
		handle:  (*Server).revokeCredential,
	},
	{
		pattern: "POST /console/developer/{org}/endpoint",
		needs:   access.Administer,
		handle:  (*Server).setEndpoint,
	},

	// feeder_limits.go
	{pattern: "GET /console/limits", handle: (*Server).limits},
	{pattern: "GET /console/limits.csv", handle: (*Server).limits},
	{pattern: "GET /console/limits.json", handle: (*Server).limits},
	// safety.go
	{pattern: "GET /console/safety", handle: (*Server).safety},
	{
		pattern:  "POST /console/safety/halt/preview",
		needs:    access.See,
		unparted: true,
		handle:   (*Server).previewHalt,
	},
	{pattern: "POST /console/safety/halt", needs: access.Operate, unparted: true, handle: (*Server).halt},
	{
		pattern:  "POST /console/safety/resume",
		needs:    access.Operate,
		confirm:  true,
		unparted: true,
		handle:   (*Server).resume,
	},
	{pattern: "POST /console/safety/caps", needs: access.Operate, handle: (*Server).setCaps},
	{pattern: "POST /console/safety/prices", needs: access.See, handle: (*Server).foresee},

	// ahead.go
	{pattern: "GET /console/ahead", handle: (*Server).ahead},
	{pattern: "GET /console/ahead.csv", handle: (*Server).ahead},
	{pattern: "GET /console/ahead.json", handle: (*Server).ahead},
	{pattern: "GET /console/offers", handle: (*Server).offers},
	{pattern: "GET /console/offers.csv", handle: (*Server).offers},
	{pattern: "GET /console/offers.json", handle: (*Server).offers},
	// instructions.go
	{pattern: "GET /console/instructions", handle: (*Server).instructions},
	{pattern: "GET /console/instructions.csv", handle: (*Server).instructions},
	{pattern: "GET /console/instructions.json", handle: (*Server).instructions},
	{pattern: "POST /console/instructions/preview", needs: access.See, handle: (*Server).instructionPreview},
	{pattern: "POST /console/instructions/send", needs: access.Operate, handle: (*Server).sendInstruction},
	{pattern: "POST /console/instructions/stop", needs: access.Operate, handle: (*Server).stopInstructions},
	{pattern: "GET /console/instructions/{id}", handle: (*Server).instruction},
	{pattern: "GET /console/instructions/{id}/report.csv", handle: (*Server).instruction},
	{pattern: "GET /console/instructions/{id}/report.json", handle: (*Server).instruction},
	{pattern: "POST /console/instructions/{id}/stop", needs: access.Operate, handle: (*Server).stopInstruction},

	// products.go
	{pattern: "GET /console/products", handle: (*Server).products},
	{pattern: "GET /console/products.csv", handle: (*Server).products},
	{pattern: "GET /console/products.json", handle: (*Server).products},
	{pattern: "POST /console/products/preview", needs: access.See, handle: (*Server).previewProducts},
	{pattern: "POST /console/products/import", needs: access.Operate, handle: (*Server).importProducts},
	{pattern: "GET /console/products/{id}", handle: (*Server).product},
	{pattern: "POST /console/products/{id}/withdraw", needs: access.Operate, handle: (*Server).withdrawProduct},

	// views.go
	{pattern: "GET /console/views.csv", handle: (*Server).viewTable},
	{pattern: "GET /console/views.json", handle: (*Server).viewTable},
	{pattern: "POST /console/views", needs: access.See, handle: (*Server).saveView},
	{pattern: "POST /console/views/{id}/delete", needs: access.See, handle: (*Server).dropView},

	// programs.go
	{pattern: "GET /console/programs", handle: (*Server).programs},
	{pattern: "GET /console/programs.csv", handle: (*Server).programs},
	{pattern: "GET /console/programs.json", handle: (*Server).programs},
	{pattern: "POST /console/programs/preview", needs: access.See, handle: (*Server).previewBinding},
	{pattern: "POST /console/programs/bind", needs: access.Operate, handle: (*Server).bindProgram},

	// search.go
	{pattern: "GET /console/search", handle: (*Server).search},
	{pattern: "GET /console/search/assets.csv", handle: (*Server).searchAssets},
	{pattern: "GET /console/search/assets.json", handle: (*Server).searchAssets},
	{pattern: "GET /console/search/sites.csv", handle: (*Server).searchSites},
	{pattern: "GET /console/search/sites.json", handle: (*Server).searchSites},

	// account.go
	{pattern: "GET /console/account", handle: (*Server).account},
	{pattern: "POST /console/account/sessions/end", needs: access.See, handle: (*Server).endOwnSessions},

	{
		pattern: "POST /console/account/two-step/begin",
		needs:   access.See,
		confirm: true,
		handle:  (*Server).beginTwoStep,
	},
	{pattern: "POST /console/account/two-step/finish", needs: access.See, handle: (*Server).finishTwoStep},
	{
		pattern: "POST /console/account/two-step/remove",
		needs:   access.See,
		confirm: true,
		handle:  (*Server).removeTwoStep,
	},

	// passkey.go
	{
		pattern: "POST /console/account/passkeys/begin",
		needs:   access.See,
		confirm: true,
		handle:  (*Server).beginPasskey,
	},
	{
		pattern: "POST /console/account/passkeys",
		needs:   access.See,
		confirm: true,
		handle:  (*Server).addPasskey,
	},
	{
		pattern: "POST /console/account/passkeys/remove",
		needs:   access.See,
		confirm: true,
		handle:  (*Server).removePasskey,
	},

	// operators.go
	{pattern: "GET /console/operators", unparted: true, handle: (*Server).operators},
	{pattern: "GET /console/operators.csv", unparted: true, handle: (*Server).operators},
	{pattern: "GET /console/operators.json", unparted: true, handle: (*Server).operators},
	{
		pattern:  "POST /console/operators/role",
		needs:    access.Administer,
		unparted: true,
		handle:   (*Server).setOperatorRole,
	},
	{
		pattern:  "POST /console/operators/orgs",
		needs:    access.Administer,
		unparted: true,
		handle:   (*Server).setOperatorOrgs,
	},
	{
		pattern:  "POST /console/operators/logout",
		needs:    access.Administer,
		unparted: true,
		handle:   (*Server).logoutOperator,
	},

	// audit.go
	{pattern: "GET /console/audit", handle: (*Server).audit},
	{pattern: "GET /console/audit.csv", handle: (*Server).audit},
	{pattern: "GET /console/audit.json", handle: (*Server).audit},
}

// Handler returns the handler of all paths under Root.
func (s *Server) Handler() http.Handler {
	s.once.Do(s.build)
	return s.handler
}

// Patterns returns the methods and paths of the console.
func (s *Server) Patterns() []string {
	s.once.Do(s.build)
	return s.mux.Patterns()
}

func (s *Server) build() {
	if s.Log == nil {
		s.Log = slog.Default()
	}

	mux := web.NewMux()
	for _, rt := range surface {
		mux.Handle(rt.pattern, s.wrap(rt))
	}

	mux.Handle(
		"GET /console/static/",
		http.StripPrefix("/console/static/", http.HandlerFunc(serveStatic)),
	)

	mux.Handle(
		"GET /console/{$}",
		http.RedirectHandler(home, http.StatusSeeOther),
	)

	mux.Handle("GET /console", http.RedirectHandler(home, http.StatusSeeOther))
	mux.Handle("/", s.wrap(route{handle: (*Server).nothing}))
	s.mux, s.handler = mux, guarded(mux)
}

// home is the first page after the login.
const home = "/console/fleet"

func (s *Server) nothing(*request) (view, error) {
	return view{}, flex.Fail(
		flex.NotFound,
		"there is no such page: use the menu, or search above",
	)
}
