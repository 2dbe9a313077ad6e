package main

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// An agent that speaks on standard input is answered on standard output, within the roles of a
// credential, and what it called is in the audit log.
func TestMCP(t *testing.T) {
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
