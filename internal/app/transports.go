package app

import (
	"net/http"
	"strings"

	"flexd/internal/adr"
	"flexd/internal/bridge"
	"flexd/internal/console"
	"flexd/internal/egress"
	"flexd/internal/openadr"
	"flexd/internal/reward"
)

// Handler is all transports: the console and the balance page under their roots, the interface
// everywhere else. A browser that asks for the beginning is shown the console.
func (h *App) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == console.Root, strings.HasPrefix(path, console.Root+"/"):
			h.Console.Handler().ServeHTTP(w, r)
		case strings.HasPrefix(path, reward.Root):
			h.Portal.Handler().ServeHTTP(w, r)
		case strings.HasPrefix(path, openadr.Root+"/"):
			h.OpenADR.Handler().ServeHTTP(w, r)
		case strings.HasPrefix(path, adr.CallbackRoot):
			h.OpenADR.Callback().ServeHTTP(w, r)

		case path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			http.Redirect(w, r, console.Root+"/", http.StatusSeeOther)
		default:
			h.API.Handler().ServeHTTP(w, r)
		}
	})
}

func (h *App) newConsole(s Settings) *console.Server {
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
		Access:         h.Access,
		Registry:       h.Registry,
		Control:        h.Control,
		Push:           h.Push,
		Reading:        h.Reading,
		Market:         h.Market,
		Reward:         h.Reward,
		Operations:     h.Operations,
		Selection:      h.Selection,
		Products:       h.Products,
		Grid:           h.Grid,
		ADR:            h.ADR,
		Clock:          h,
		Jobs:           h.Jobs,
		Environment:    h.DB.Environment,
		Cell:           s.Cell,
		Cells:          s.Cells,
		Log:            s.Log,
		TrustedProxies: s.TrustedProxies,
		PublicURL:      s.BaseURL,
		TwoStep:        s.TwoStep,
		ResumeByTwo:    s.ResumeByTwo,
	}
}
