package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

// An agent that writes to standard input gets its answers on standard output, within the roles
// of a credential. Its calls are in the audit log.
func TestMCP_Serve(t *testing.T) {
	database := freshDatabase(t)
	flexd := commandLineOf(t, database)
	if code, said := flexd("org add Acme --username acme"); code != exitDone {
		t.Fatal(said)
	}
	if code, said := flexd("mcp --username nobody"); code != exitFailed || !strings.Contains(said, "flexd credential list") {
		t.Errorf("an unknown credential: %d %s", code, said)
	}

	for flags, changes := range map[string]bool{"mcp": false, "mcp --write": true} {
		in, agent := io.Pipe()
		answers, out := io.Pipe()
		ended := make(chan int)
		go func() { ended <- run(t.Context(), strings.Fields(flags), console{in: in, out: out, err: io.Discard}) }()

		var text string
		said := bufio.NewReader(answers)
		for _, step := range []struct {
			line    string
			answers bool
		}{
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, true},
			{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, false},
			{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, true},
			{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_exceptions","arguments":{}}}`, true},
		} {
			if _, err := io.WriteString(agent, step.line+"\n"); err != nil {
				t.Fatal(err)
			}

			if !step.answers {
				continue
			}
			line, err := said.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			text += line
		}

		agent.Close()
		if code := <-ended; code != exitDone {
			t.Errorf("flexd %s ended with %d", flags, code)
		}
		if !strings.Contains(text, `"explain_schedule"`) || strings.Contains(text, `"send_instruction"`) != changes {
			t.Errorf("flexd %s: %s", flags, text)
		}
		if !strings.Contains(text, `"id":3,"result"`) || strings.Contains(text, `"isError":true`) {
			t.Errorf("flexd %s: no exceptions: %s", flags, text)
		}
	}

	if _, said := flexd("audit list"); strings.Count(said, "call tool list_exceptions") != 2 {
		t.Errorf("the audit log: %s", said)
	}
}

// Over HTTP an agent sends a bearer token, and its calls are in the audit log of its
// organisation.
func TestMCP_Listen(t *testing.T) {
	database := freshDatabase(t)
	flexd := commandLineOf(t, database)
	if code, said := flexd("org add Acme --username acme"); code != exitDone {
		t.Fatal(said)
	}
	for _, line := range []string{"mcp --listen 127.0.0.1:0 --org Acme", "mcp --listen 127.0.0.1:0 --username acme"} {
		if code, said := flexd(line); code == exitDone || !strings.Contains(said, "token says whose") {
			t.Errorf("%s: %d %s", line, code, said)
		}
	}

	h, err := store{Database: database, Environment: "production"}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()

	var org flex.OrgID
	err = h.DB.ReadAll(t.Context(), func(all *records.All) error {
		found, err := all.OrgNamed(t.Context(), "Acme")
		org = found.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	issued, err := h.Access.Issue(
		t.Context(),
		access.Principal{Org: org, Username: "acme", Roles: []flex.Role{flex.EntityRead}},
		access.TokenLife,
	)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	said, out := io.Pipe()
	ended := make(chan int)
	go func() {
		ended <- run(
			ctx,
			[]string{"mcp", "--listen", "127.0.0.1:0"},
			console{in: strings.NewReader(""), out: out, err: io.Discard},
		)
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	url, listening := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !listening {
		t.Fatalf("%q %v", line, err)
	}

	ask := func(token, host string) (int, string) {
		r, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			url,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_exceptions","arguments":{}}}`),
		)
		if err != nil {
			t.Fatal(err)
		}

		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if host != "" {
			r.Host = host
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}

		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}

	if code, text := ask(issued.Token.Reveal(), ""); code != http.StatusOK || !strings.Contains(text, `"id":1,"result"`) || strings.Contains(text, `"isError":true`) {
		t.Errorf("with a token: %d %s", code, text)
	}
	if code, text := ask("", ""); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", code, text)
	}
	if code, text := ask("nonsense", ""); code != http.StatusUnauthorized {
		t.Errorf("with no token of ours: %d %s", code, text)
	}
	if code, text := ask(issued.Token.Reveal(), "evil.example"); code != http.StatusForbidden {
		t.Errorf("under another name: %d %s", code, text)
	}

	stop()
	if code := <-ended; code != exitDone {
		t.Errorf("it ended with %d", code)
	}
	if _, said := flexd("audit list"); !strings.Contains(said, "agent of credential acme") || !strings.Contains(said, "call tool list_exceptions") {
		t.Errorf("the log has %s", said)
	}
}

// While an organisation's pushes are halted, its agents cannot change anything, but those of
// another can.
func TestMCP_HaltedOrganisation(t *testing.T) {
	database := freshDatabase(t)
	h, err := store{Database: database, Environment: "sandbox"}.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	defer h.Close()
	halted := storetest.NewSeed(t, h.DB, database).Org
	other, err := h.DB.AddOrg(t.Context(), "Acme")
	if err != nil {
		t.Fatal(err)
	}

	said := func(org flex.OrgID) string {
		why, err := h.AgentSettings(access.Principal{Org: org}, "test").Halted(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return why
	}

	scope := delivery.HaltScope{Kind: records.HaltOrg, Org: halted}
	if err := h.Push.Halt(t.Context(), delivery.HaltOrder{Scope: scope, Operator: "ada", Reason: "an agent errs"}); err != nil {
		t.Fatal(err)
	}
	if said(halted) != "by an operator" || said(other.ID) != "" {
		t.Errorf("one is halted: %q, %q", said(halted), said(other.ID))
	}

	if err := h.Push.Halt(t.Context(), delivery.HaltOrder{Operator: "ada", Reason: "all of them err"}); err != nil {
		t.Fatal(err)
	}
	if said(other.ID) != "by an operator" {
		t.Error("all are halted, and an agent goes on")
	}
}
