package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/mcp"
	"flexd/internal/store/storetest"
)

// bearer sends a token with each request.
type bearer struct{ token flex.Secret }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token.Reveal())
	return http.DefaultTransport.RoundTrip(r)
}

// overHTTP serves the agents of both organisations.
func (w *world) overHTTP() *httptest.Server {
	w.Helper()
	server := httptest.NewServer(mcp.OverHTTP(func(r *http.Request) (string, mcp.Settings, error) {
		token := flex.Secret(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		_, err := w.app.Access.Identify(r.Context(), token)
		return token.Reveal(), mcp.Settings{
			Version: "test", API: w.app.API.Handler(), Write: true, From: r.RemoteAddr,
			Token:  func(context.Context) (flex.Secret, error) { return token, nil },
			Halted: func(context.Context) (string, error) { return "", nil },
			Act:    func(_ context.Context, _, _ string, do func() error) error { return do() },
		}, err
	}))
	w.Cleanup(server.Close)
	return server
}

// speak joins an agent that has a token.
func (w *world) speak(url string, token flex.Secret) *sdk.ClientSession {
	w.Helper()
	transport := &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}}}
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(w.Context(), transport, nil)
	w.must(err)
	w.Cleanup(func() { agent.Close() })
	return agent
}

// Agents of two organisations speak over HTTP at once: each sees its own, confirms its own changes
// alone, and is let in as long as its token is good.
func TestOverHTTP(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		w := open(t, url, true)
		server := w.overHTTP()
		local := w.agent
		agents := []*sdk.ClientSession{w.speak(server.URL, w.tokens[0]), w.speak(server.URL, w.tokens[1])}

		var codes [2]string
		arguments := make([]map[string]any, 2)
		for i, agent := range agents {
			w.agent = agent
			text, done := w.call("list_assets", map[string]any{})
			if !done || !strings.Contains(text, w.assets[i].String()) || strings.Contains(text, w.assets[1-i].String()) {
				t.Errorf("agent %d sees %t %s", i, done, text)
			}
			w.refused("404", "get_asset", map[string]any{"asset_id": w.assets[1-i].String()})
			arguments[i] = map[string]any{"body": map[string]any{"fleet": map[string]any{"cap_kw": 100 + i}}}
			codes[i] = w.confirmation("set_caps", arguments[i])
		}

		for i, agent := range agents { // a confirmation is its own agent's alone
			w.agent = agent
			w.refused("unknown", "set_caps", with(arguments[1-i], codes[1-i]))
			if text, done := w.call("set_caps", with(arguments[i], codes[i])); !done {
				t.Errorf("agent %d: %s", i, text)
			}
			w.refused("unknown", "set_caps", with(arguments[i], codes[i]))
			if text, _ := w.call("get_caps", map[string]any{}); !strings.Contains(text, fmt.Sprint(100+i)) {
				t.Errorf("the caps of %d: %s", i, text)
			}
		}
		w.agent = local

		for name, header := range map[string]http.Header{
			"no token":    {},
			"a wrong one": {"Authorization": {"Bearer " + strings.Repeat("x", len(w.tokens[0]))}},
			"a web page":  {"Authorization": {"Bearer " + w.tokens[0].Reveal()}, "Sec-Fetch-Site": {"cross-site"}},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			w.must(err)
			r.Header = header.Clone()
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			answer, err := http.DefaultClient.Do(r)

			w.must(err)
			text, err := io.ReadAll(answer.Body)
			w.must(err)
			answer.Body.Close()
			if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden || strings.Contains(string(text), "list_assets") {
				t.Errorf("%s: %d %s", name, answer.StatusCode, text)
			}
		}

		// What ends at the interface ends here.
		w.must(w.app.Access.Revoke(t.Context(), "bravo"))
		if _, err := agents[1].CallTool(t.Context(), &sdk.CallToolParams{Name: "list_assets"}); err == nil {
			t.Error("a revoked credential's agent is answered")
		}
		w.agent = agents[0]
		if text, done := w.call("list_assets", map[string]any{}); !done {
			t.Error(text)
		}
		w.agent = local
	})
}

// After MaxAgents others an agent's confirmations are forgotten, and it is answered as before.
func TestOverHTTP_MaxAgents(t *testing.T) {
	w := open(t, storetest.SQLite(t), true)
	server := w.overHTTP()
	local := w.agent
	w.agent = w.speak(server.URL, w.tokens[0])
	arguments := map[string]any{"body": map[string]any{"fleet": map[string]any{"cap_kw": 50}}}
	kept, lost := w.confirmation("set_caps", arguments), ""
	first := w.agent

	for i := range mcp.MaxAgents {
		issued, err := w.app.Access.Issue(t.Context(), access.Principal{Org: w.orgs[0].ID, Username: "alpha", Roles: []flex.Role{flex.EntityRead}}, access.TokenLife)
		w.must(err)
		other := w.speak(server.URL, issued.Token)
		if i == mcp.MaxAgents-2 { // one fewer than it takes
			if text, done := first.CallTool(t.Context(), &sdk.CallToolParams{Name: "set_caps", Arguments: with(arguments, kept)}); done != nil || text.IsError {
				t.Errorf("forgotten too early: %v %v", text, done)
			}
			lost = w.confirmation("set_caps", map[string]any{"body": map[string]any{"fleet": map[string]any{"cap_kw": 60}}})
		}
		_ = other
	}

	for range mcp.MaxAgents {
		issued, err := w.app.Access.Issue(t.Context(), access.Principal{Org: w.orgs[0].ID, Username: "alpha", Roles: []flex.Role{flex.EntityRead}}, access.TokenLife)
		w.must(err)
		w.speak(server.URL, issued.Token)
	}
	w.refused("unknown", "set_caps", with(map[string]any{"body": map[string]any{"fleet": map[string]any{"cap_kw": 60}}}, lost))
	w.agent = local
}
