package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/mcp"
	records "flexd/internal/store"
	"flexd/internal/web"
)

// mcpServer is `flexd mcp`.
type mcpServer struct {
	ofOrg
	Username string `help:"The credential whose roles the agent has; the organisation's first if not given." placeholder:"NAME"`
	Listen   string `help:"Answer agents over HTTP at this address, such as 127.0.0.1:8090, at the path /mcp; they need a bearer token of the interface. On standard input and output if not given." placeholder:"HOST:PORT"`
	Write    bool   `help:"Offer tools that change something, too. Each needs two calls: one that shows what would be done, and one that confirms it."`
}

// Run answers one agent on standard input and output until its end, or any over HTTP.
func (o *mcpServer) Run(ctx context.Context, c console) error {
	if o.Listen != "" {
		return o.serve(ctx, c)
	}

	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	credential, err := o.credential(ctx, h, org)
	if err != nil {
		return err
	}

	server, err := mcp.New(o.settings(h, org, credential))
	if err != nil {
		return err
	}

	return server.Run(ctx, &sdk.IOTransport{
		Reader: io.NopCloser(c.in),
		Writer: unclosed{c.out},
	})
}

// settings returns the settings of the MCP server for a credential's agent.
func (o *mcpServer) settings(
	h *app.App,
	org flex.Org,
	credential records.Credential,
) mcp.Settings {
	roles := agentRoles(credential.Roles, o.Write)
	tokens := agentTokens{
		app: h,
		principal: access.Principal{
			Org:      org.ID,
			Username: credential.Username,
			Roles:    roles,
		},
	}

	settings := h.AgentSettings(tokens.principal, version())
	settings.Write, settings.Token = o.Write, tokens.token

	return settings
}

// serve answers agents over HTTP until it is stopped.
func (o *mcpServer) serve(ctx context.Context, c console) error {
	if o.Org != "" || o.Username != "" {
		return flex.Fail(
			flex.Invalid,
			"with --listen an agent's token says whose it is: leave --org and --username out",
		)
	}

	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()

	l, err := listenAt("--listen", o.Listen)
	if err != nil {
		return err
	}
	defer l.Close()

	fmt.Fprintf(c.out, "listening on http://%s/mcp\n", l.Addr())

	return (&web.Server{Handler: h.Agents(version(), o.Write)}).Serve(ctx, l)
}

// unclosed leaves standard output open when the agent disconnects.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }

// credential is the one whose roles the agent has.
func (o *mcpServer) credential(
	ctx context.Context,
	h *app.App,
	org flex.Org,
) (records.Credential, error) {
	all, err := h.Access.Credentials(ctx, org.ID)
	if err != nil {
		return records.Credential{}, err
	}

	for _, c := range all {
		chosen := o.Username == "" || c.Username == o.Username
		expired := !c.ExpiresAt.IsZero() && !c.ExpiresAt.After(h.DB.Now())
		isValid := c.RevokedAt.IsZero() && !expired
		if chosen && isValid {
			return c, nil
		}
	}

	return records.Credential{}, flex.Fail(
		flex.NotFound,
		"%s has no such credential that holds: flexd credential list prints them",
		org.Name,
	)
}

// agentRoles returns the roles of a credential that an agent has: those that read and, with
// write, the one that changes.
func agentRoles(roles []flex.Role, write bool) []flex.Role {
	var allowed []flex.Role
	for _, r := range roles {
		if r == flex.EntityRead || write && r == flex.EntityWrite {
			allowed = append(allowed, r)
		}
	}

	return allowed
}

// agentTokens issues tokens, a new one before the last one expires.
type agentTokens struct {
	app       *app.App
	principal access.Principal

	mu     sync.Mutex // calls may come at once
	issued access.Issued
}

// token returns a token that is valid for at least a minute.
func (t *agentTokens) token(ctx context.Context) (flex.Secret, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if time.Until(t.issued.ExpiresAt) > time.Minute {
		return t.issued.Token, nil
	}

	issued, err := t.app.Access.Issue(ctx, t.principal, access.TokenLife)
	if err != nil {
		return "", err
	}

	t.issued = issued

	return issued.Token, nil
}
