package app

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"

	"flexd/internal/access"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/mcp"
	"flexd/internal/store"
	"flexd/internal/web"
)

// Agents answers agents over HTTP. Each speaks with a token of the interface; with write, who may change something
// is offered the tools that do.
func (a *App) Agents(version string, write bool) *web.Mux {
	mux := web.NewMux()
	mux.Handle("/mcp", mcp.OverHTTP(func(r *http.Request) (string, mcp.Settings, error) {
		return a.agent(r, version, write)
	}))

	return mux
}

// agent finds whose request it is.
func (a *App) agent(
	r *http.Request,
	version string,
	write bool,
) (string, mcp.Settings, error) {
	from := web.Proxies{}.Client(r)
	token, who, err := a.identifyAgent(r, from)

	// Who is nobody, or somebody of one home, is counted by the address: each call is written in the audit log.
	org := who.Org
	if err != nil || who.Component() {
		org = flex.OrgID{}
	}
	if over := a.API.Admit(http.Header{}, org, from); over != nil {
		return "", mcp.Settings{}, over
	}
	if err != nil {
		return "", mcp.Settings{}, err
	}

	sum := sha256.Sum256([]byte(token))
	settings := a.AgentSettings(who, version)
	settings.Write = write && who.May(flex.EntityWrite)
	settings.Token = func(context.Context) (flex.Secret, error) { return token, nil }
	settings.From = r.RemoteAddr

	return string(sum[:]) + from, settings, nil
}

// identifyAgent finds whose token a request has, and whether it may be used from there.
func (a *App) identifyAgent(
	r *http.Request,
	from string,
) (flex.Secret, access.Principal, error) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", access.Principal{}, flex.Fail(
			flex.Unauthorized,
			"give a token of the interface, as in Authorization: Bearer TOKEN",
		)
	}

	token := flex.Secret(strings.TrimSpace(text))
	who, err := a.Access.Identify(r.Context(), token)
	if err != nil {
		return "", access.Principal{}, err
	}

	return token, who, a.Access.Admit(r.Context(), who, from)
}

// AgentSettings are what an agent of a credential works on, without its token.
func (a *App) AgentSettings(who access.Principal, version string) mcp.Settings {
	return mcp.Settings{
		Version: version,
		Org:     who.Org,
		API:     a.API.Handler(),
		Halted:  a.whyHalted(who.Org),
		Act:     a.agentActs(who),

		Household: who.Component(),
	}
}

// agentActs writes an agent's calls in the audit log.
func (a *App) agentActs(
	who access.Principal,
) func(ctx context.Context, tool, arguments string, do func() error) error {
	return func(ctx context.Context, tool, arguments string, do func() error) error {
		call := flex.AuditEntry{
			Who:    "agent of credential " + who.Username,
			Act:    "call tool " + tool,
			Org:    who.Org,
			Detail: arguments,
		}

		return a.Access.Act(ctx, call, do)
	}
}

// whyHalted says that pushes are halted, all of them or the organisation's. Who halted them and why is for operators: an agent
// is a client's, or a household's.
func (a *App) whyHalted(org flex.OrgID) func(ctx context.Context) (string, error) {
	own := delivery.HaltScope{Kind: store.HaltOrg, Org: org}.String()

	return func(ctx context.Context) (string, error) {
		halts, err := a.Push.Halts(ctx)
		for i := range halts {
			if halts[i].OfAll() || halts[i].Scope == own {
				return "by an operator", err
			}
		}

		return "", err
	}
}
