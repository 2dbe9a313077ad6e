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
		who, err := w.app.Access.Identify(r.Context(), token)
		return token.Reveal(), mcp.Settings{
			Version: "test", Org: who.Org, API: w.app.API.Handler(), Write: true, From: r.RemoteAddr,
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
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(
		w.Context(),
		transport,
		nil,
	)
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
			w.refused(
				"404",
				"get_asset",
				map[string]any{"asset_id": w.assets[1-i].String()},
			)
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
			r, err := http.NewRequestWithContext(
				t.Context(),
				http.MethodPost,
				server.URL,
				strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`),
			)
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

// MaxOrgAgents of one organisation's agents keep what waits to be confirmed, and however many it has, another organisation's keeps its own.
func TestOverHTTP_MaxOrgAgents(t *testing.T) {
	w := open(t, storetest.SQLite(t), true)
	server := w.overHTTP()
	local := w.agent
	caps := func(kw int) map[string]any {
		return map[string]any{"body": map[string]any{"fleet": map[string]any{"cap_kw": kw}}}
	}
	more := func() {
		w.Helper()
		issued, err := w.app.Access.Issue(
			t.Context(),
			access.Principal{Org: w.orgs[0].ID, Username: "alpha", Roles: []flex.Role{flex.EntityRead}},
			access.TokenLife,
		)
		w.must(err)
		w.speak(server.URL, issued.Token)
	}

	other := w.speak(server.URL, w.tokens[1])
	w.agent = other
	others := w.confirmation("set_caps", caps(70))

	own := w.speak(server.URL, w.tokens[0])
	w.agent = own
	kept := w.confirmation("set_caps", caps(50))
	for range mcp.MaxOrgAgents - 1 { // one fewer than it takes
		more()
	}
	if text, done := w.call("set_caps", with(caps(50), kept)); !done {
		t.Errorf("forgotten too early: %s", text)
	}

	lost := w.confirmation("set_caps", caps(60))
	for range mcp.MaxOrgAgents {
		more()
	}
	w.refused("unknown", "set_caps", with(caps(60), lost))

	for range mcp.MaxAgents {
		more()
	}
	w.agent = other
	if text, done := w.call("set_caps", with(caps(70), others)); !done {
		t.Errorf("another organisation's agents have it forgotten: %s", text)
	}
	w.agent = local
}

// With more than MaxAgents of several organisations the one that has the most loses its oldest, and no other loses any.
func TestOverHTTP_MaxAgents(t *testing.T) {
	made := map[string]int{}
	handler := mcp.ServeHTTP(func(r *http.Request) (string, mcp.Settings, error) {
		key := r.Header.Get("Test-Agent")
		return key, mcp.Settings{Version: key, Org: flex.OrgID{key[0]}}, nil
	}, func(s mcp.Settings) (*sdk.Server, error) {
		made[s.Version]++
		return sdk.NewServer(&sdk.Implementation{Name: "test", Version: s.Version}, nil), nil
	})

	speak := func(org byte, i int) string {
		key := fmt.Sprintf("%c%d", org, i)
		r := httptest.NewRequest(
			http.MethodPost,
			"/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`),
		)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Test-Agent", key)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		return key
	}

	quiet := speak('q', 0)
	full := mcp.MaxAgents - 1 // with the quiet one as many as there may be
	for i := range full {
		speak("abcd"[i%4], i/4)
	}

	speak('q', 0)
	if speak('a', 0); made["a0"] != 1 {
		t.Errorf("with %d agents one is forgotten", mcp.MaxAgents)
	}

	speak('e', 0) // one more: the oldest of those that have the most goes
	for i := range 20 {
		speak("abcde"[i%5], 100+i)
	}

	if speak('q', 0); made[quiet] != 1 {
		t.Errorf("the only agent of an organisation was forgotten %d times", made[quiet]-1)
	}

	forgotten := 0
	for i := range full {
		if key := speak("abcd"[i%4], i/4); made[key] > 1 {
			forgotten++
		}
	}

	if forgotten == 0 {
		t.Error("nobody was forgotten")
	}
}

// However many households of an organisation have agents, its own agent keeps what waits to be confirmed.
func TestOverHTTP_Households(t *testing.T) {
	w := open(t, storetest.SQLite(t), true)
	server := httptest.NewServer(w.app.Agents("test", true))
	t.Cleanup(server.Close)
	local := w.agent
	caps := map[string]any{"body": map[string]any{"fleet": map[string]any{"cap_kw": 50}}}

	w.agent = w.speak(server.URL+"/mcp", w.tokens[0])
	code := w.confirmation("set_caps", caps)
	for range mcp.MaxAgents {
		household := access.Principal{Org: w.orgs[0].ID, Username: "alpha", Site: w.sites[0], Roles: []flex.Role{flex.EntityRead}}
		issued, err := w.app.Access.Issue(t.Context(), household, access.TokenLife)
		w.must(err)
		w.speak(server.URL+"/mcp", issued.Token)
	}

	if text, done := w.call("set_caps", with(caps, code)); !done {
		t.Errorf("households have it forgotten: %s", text)
	}
	w.agent = local
}
