package app

import (
	"net/http"
	"slices"
	"strings"

	"flexd/internal/adr"
	"flexd/internal/bridge"
	"flexd/internal/console"
	"flexd/internal/egress"
	"flexd/internal/openadr"
	"flexd/internal/reward"
)

// Handler serves all transports: the console and the balance page under their own paths, the
// interface at all others. A browser that requests the root is redirected to the console.
func (a *App) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == console.Root, strings.HasPrefix(path, console.Root+"/"):
			a.Console.Handler().ServeHTTP(w, r)
		case strings.HasPrefix(path, reward.Root):
			a.Portal.Handler().ServeHTTP(w, r)
		case strings.HasPrefix(path, openadr.Root+"/"):
			a.OpenADR.Handler().ServeHTTP(w, r)
		case strings.HasPrefix(path, adr.CallbackRoot):
			a.OpenADR.Callback().ServeHTTP(w, r)

		case path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			http.Redirect(w, r, console.Root+"/", http.StatusSeeOther)
		default:
			a.API.Handler().ServeHTTP(w, r)
		}
	})
}

// Patterns are the methods and paths that Handler answers.
func (a *App) Patterns() ([]string, error) {
	service, err := a.API.Patterns()
	if err != nil {
		return nil, err
	}

	programs, err := a.OpenADR.Patterns()

	return slices.Concat(
		service,
		a.Console.Patterns(),
		a.Portal.Patterns(),
		programs,
		[]string{"GET /"},
	), err
}

func (a *App) newConsole(s Settings) *console.Server {
	var at *bridge.Client
	if s.BridgeURL != "" {
		at = &bridge.Client{
			Web:   egress.New(egress.Options{Allow: egress.Private}),
			URL:   s.BridgeURL,
			Token: s.BridgeToken,
		}
	}

	return &console.Server{
		Bridge:         at,
		Access:         a.Access,
		Registry:       a.Registry,
		Control:        a.Control,
		Push:           a.Push,
		Reading:        a.Reading,
		Market:         a.Market,
		Reward:         a.Reward,
		Operations:     a.Operations,
		Selection:      a.Selection,
		Products:       a.Products,
		Grid:           a.Grid,
		ADR:            a.ADR,
		Clock:          a,
		Jobs:           a.Jobs,
		Environment:    a.DB.Environment,
		Cell:           s.Cell,
		Cells:          s.Cells,
		Log:            s.Log,
		TrustedProxies: s.TrustedProxies,
		PublicURL:      s.BaseURL,
		TwoStep:        s.TwoStep,
		ResumeByTwo:    s.ResumeByTwo,
	}
}
