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

// Agents answers agents (MCP) over HTTP. Each authenticates with a token of the interface.
// With write, agents whose credential may change something get the tools that do.
func (a *App) Agents(version string, write bool) *web.Mux {
	mux := web.NewMux()
	mux.Handle("/mcp", mcp.OverHTTP(func(r *http.Request) (string, mcp.Settings, error) {
		return a.agent(r, version, write)
	}))

	return mux
}

// agent authenticates a request.
func (a *App) agent(
	r *http.Request,
	version string,
	write bool,
) (string, mcp.Settings, error) {
	from := web.Proxies{}.Client(r)
	token, who, err := a.identifyAgent(r, from)

	// Requests without authentication, or with a household's, are limited by the address,
	// because each call is written to the audit log.
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

// identifyAgent returns the principal of a request's token, if the token may be used from that
// address.
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

// AgentSettings are the settings of an agent with a credential, without its token.
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

// agentActs writes an agent's calls to the audit log.
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

// whyHalted says whether pushes are halted, all of them or the organisation's. The author and
// the reason are not included, because they are for operators, and an agent belongs to a
// client or a household.
func (a *App) whyHalted(org flex.OrgID) func(ctx context.Context) (string, error) {
	own := delivery.HaltScope{Kind: store.HaltOrg, Org: org}.String()

	return func(ctx context.Context) (string, error) {
		halts, err := a.Push.Halts(ctx)
		for i := range halts {
			if halts[i].IsGlobal() || halts[i].Scope == own {
				return "by an operator", err
			}
		}

		return "", err
	}
}
