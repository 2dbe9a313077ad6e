package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/mcp"
	"flexd/internal/selection"
	"flexd/internal/store/storetest"
)

// world is two organisations with a site and a charger each, and an agent of the first.
type world struct {
	*testing.T
	app    *app.App
	seed   *storetest.Seed
	orgs   [2]flex.Org
	sites  [2]flex.SiteID
	assets [2]flex.AssetID
	tokens [2]flex.Secret

	now    time.Time // by which confirmations end
	speaks int       // whose token the agent has: 0, unless a fault is planted
	agent  *sdk.ClientSession
}

// open starts flexd on an engine, and an agent that may write or not.
func open(t *testing.T, url string, write bool) *world {
	t.Helper()
	h, err := app.Open(t.Context(), app.Settings{Database: url, Keys: storetest.Keys(t), Environment: flex.Sandbox, RateLimit: 1_000_000,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storetest.Close(t, h.DB) })

	w := &world{T: t, app: h, seed: storetest.NewSeed(t, h.DB, url), now: time.Now()}
	for i, name := range []string{"alpha", "bravo"} {
		org, _, err := h.Access.AddOrg(t.Context(), name, name, "")
		w.must(err)
		seed := w.seed.As(org.ID)
		w.orgs[i] = org
		w.sites[i] = seed.Site()
		w.assets[i] = seed.Asset(w.sites[i], "charger", 7400)
		issued, err := h.Access.Issue(t.Context(), access.Principal{Org: org.ID, Username: name, Roles: []flex.Role{flex.EntityRead, flex.EntityWrite}}, time.Hour)
		w.must(err)
		w.tokens[i] = issued.Token
	}

	w.agent = w.connect(write)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// connect joins an agent and a server in this process.
func (w *world) connect(write bool) *sdk.ClientSession {
	w.Helper()
	server, err := mcp.New(mcp.Settings{
		Version: "test", API: w.app.API.Handler(), Write: write,
		Token: func(context.Context) (flex.Secret, error) { return w.tokens[w.speaks], nil },
		Halted: func(ctx context.Context) (string, error) {
			halt, err := w.app.Push.Halted(ctx)
			if err != nil || halt == nil {
				return "", err
			}

			return halt.Reason, nil
		},
		Act: func(ctx context.Context, tool, arguments string, do func() error) error {
			return w.app.Access.Act(ctx, flex.AuditEntry{Who: "agent", Act: "call tool " + tool, Org: w.orgs[0].ID, Detail: arguments}, do)
		},
		Now: func() time.Time { return w.now },
	})
	w.must(err)

	near, far := sdk.NewInMemoryTransports()
	session, err := server.Connect(w.Context(), far, nil)
	w.must(err)
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(w.Context(), near, nil)
	w.must(err)
	w.Cleanup(func() { agent.Close(); session.Wait() })

	return agent
}

// call calls a tool and returns its text, and whether it succeeded.
func (w *world) call(tool string, arguments map[string]any) (string, bool) {
	w.Helper()
	r, err := w.agent.CallTool(w.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	w.must(err)
	if len(r.Content) != 1 {
		w.Fatalf("%s: %d contents", tool, len(r.Content))
	}
	return r.Content[0].(*sdk.TextContent).Text, !r.IsError
}

// refused calls a tool that must refuse with some words.
func (w *world) refused(words, tool string, arguments map[string]any) {
	w.Helper()
	if text, done := w.call(tool, arguments); done || !strings.Contains(text, words) {
		w.Errorf("%s %v: %t %s, want %q", tool, arguments, done, text, words)
	}
}

// confirmation previews a change and returns what confirms it.
func (w *world) confirmation(tool string, arguments map[string]any) string {
	w.Helper()
	text, done := w.call(tool, arguments)
	var answer struct {
		Done         *bool
		Confirmation string
		ExpiresAt    time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || !done || answer.Done == nil || *answer.Done || answer.Confirmation == "" {
		w.Fatalf("%s %v: %t %s", tool, arguments, done, text)
	}
	return answer.Confirmation
}

func with(arguments map[string]any, code string) map[string]any {
	all := map[string]any{"confirmation": code}
	for k, v := range arguments {
		all[k] = v
	}
	return all
}

// Each tool stands alone: what its schema refers to is in it. Without leave to write there are
// none that change anything.
func TestTools(t *testing.T) {
	w := open(t, storetest.SQLite(t), true)
	reads := 0

	for _, write := range []bool{false, true} {
		list, err := w.connect(write).ListTools(t.Context(), nil)
		w.must(err)

		for _, tool := range list.Tools {
			b, err := json.Marshal(tool.InputSchema)
			w.must(err)
			var schema struct {
				Defs map[string]any `json:"$defs"`
			}
			w.must(json.Unmarshal(b, &schema))

			for _, part := range strings.Split(string(b), `"$ref":"#/`)[1:] {
				name, _, _ := strings.Cut(part, `"`)
				if def, own := strings.CutPrefix(name, "$defs/"); !own || schema.Defs[def] == nil {
					t.Errorf("%s refers to %s, which it does not have", tool.Name, name)
				}
			}

			if tool.Description == "" || tool.Annotations == nil {
				t.Errorf("%s does not say what it does", tool.Name)
			}
			if !write && !tool.Annotations.ReadOnlyHint {
				t.Errorf("%s changes something", tool.Name)
			}
			if tool.Annotations.ReadOnlyHint {
				reads++
			}
		}

		if write && len(list.Tools)*2 == reads {
			t.Error("nothing changes anything")
		}
	}
}

// An agent reads its organisation's records and nothing of another's, and is told what is wrong
// with its calls. Each call is in the audit log.
func TestRead(t *testing.T) {
	w := open(t, storetest.SQLite(t), false)
	before := w.seed.Count(`SELECT COUNT(*) FROM audit`)
	if text, done := w.call("get_site", map[string]any{"site_id": w.sites[0]}); !done || !strings.Contains(text, w.sites[0].String()) {
		t.Errorf("its site: %s", text)
	}
	if text, done := w.call("list_assets", map[string]any{"limit": 1}); !done || !strings.Contains(text, w.assets[0].String()) {
		t.Errorf("its assets: %s", text)
	}

	if text, done := w.call("list_assets", map[string]any{"limit": nil}); !done || !strings.Contains(text, w.assets[0].String()) {
		t.Errorf("its assets, with a parameter that is null: %s", text)
	}

	w.refused("404", "get_site", map[string]any{"site_id": w.sites[1]})
	w.refused("needs site_id", "get_site", nil)
	w.refused(`no argument "site"; it has site_id`, "get_site", map[string]any{"site": w.sites[0]})
	w.refused("a text, a number", "get_site", map[string]any{"site_id": []string{"x"}})
	w.refused("not a valid uuid", "get_site", map[string]any{"site_id": ".."})
	w.refused("422", "what_if", map[string]any{"body": map[string]any{"asset_ids": 7}})
	w.refused("bytes", "what_if", map[string]any{"body": strings.Repeat("x", mcp.MaxArguments)})
	if _, err := w.agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "set_caps"}); err == nil {
		t.Error("a tool that writes is there")
	}

	if logged := w.seed.Count(`SELECT COUNT(*) FROM audit`) - before; logged != 10 {
		t.Errorf("%d of 10 calls are in the audit log", logged)
	}
}

// TestCall_LoggedInWholeCharacters: what a call is logged with ends at a character's end, as PostgreSQL keeps no part of one.
func TestCall_LoggedInWholeCharacters(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		w := open(t, url, false)
		for _, before := range []string{"", "x"} {
			id := before + strings.Repeat("\u00e9", 1000)
			if text, _ := w.call("get_asset", map[string]any{"asset_id": id}); strings.Contains(text, "flexd failed") {
				t.Errorf("with %q before: %s", before, text)
			}
		}
	})
}

// TestCall_LogsNobody: the audit log, which is kept for good, has of a call which home it was about, and not its postcode or meter.
func TestCall_LogsNobody(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		w := open(t, url, false)
		w.call("list_sites", map[string]any{"postcode": "SW1A 1AA", "limit": 7})
		w.call("list_sites", map[string]any{"mpan": "1234567890126"})
		w.call("list_assets", map[string]any{"email": "ann@example.com"})
		w.call("get_asset", map[string]any{"asset_id": w.assets[0].String()})

		for part, want := range map[string]int{
			"%SW1A%":                           0,
			"%1234567890126%":                  0,
			"%ann@example%":                    0,
			"%\"limit\":7,\"postcode\"%":       1,
			"%" + w.assets[0].String() + "\"%": 1,
		} {
			if n := w.seed.Count(`SELECT COUNT(*) FROM audit WHERE detail LIKE $1`, part); n != want {
				t.Errorf("%s is in %d entries, want %d", part, n, want)
			}
		}
	})
}

// A change takes a confirmation that was made from its own dry run, is for the same arguments, is
// new, and is used once; what was shown still stands, and nobody halted pushes.
func TestConfirm(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		w := open(t, url, true)
		caps := func(kw float64) map[string]any {
			return map[string]any{"body": map[string]any{"fleet": map[string]any{"cap_kw": kw}}}
		}
		stand := func() string { text, _ := w.call("get_caps", nil); return text }
		empty := stand()

		code := w.confirmation("set_caps", caps(10))
		if stand() != empty {
			t.Fatal("a dry run set the caps")
		}

		for _, none := range []any{nil, ""} {
			again := caps(10)
			again["confirmation"] = none
			if fresh := w.confirmation("set_caps", again); stand() != empty {
				t.Fatalf("the confirmation %v set the caps, and gave %s", none, fresh)
			}
		}

		w.refused("for another call", "set_caps", with(caps(11), code))
		w.refused("unknown, was used", "set_caps", with(caps(10), code))
		w.refused("unknown, was used", "set_caps", with(caps(10), "guessed"))
		w.refused("no text", "set_caps", map[string]any{"body": map[string]any{}, "confirmation": 1})

		code = w.confirmation("set_caps", caps(10))
		w.now = w.now.Add(mcp.ConfirmationLife)
		w.refused("older than 10m", "set_caps", with(caps(10), code))

		code = w.confirmation("set_caps", caps(10))
		w.must(w.app.Push.Halt(t.Context(), delivery.HaltOrder{Operator: "ada", Reason: "a firmware fault"}))
		w.refused("a firmware fault", "set_caps", with(caps(10), code))
		w.refused("a firmware fault", "set_caps", caps(10))
		w.must(w.app.Push.Resume(t.Context(), delivery.HaltScope{}))
		if stand() != empty {
			t.Fatal("a refused call set the caps")
		}

		other := w.confirmation("set_caps", caps(12))
		if text, done := w.call("set_caps", with(caps(10), code)); !done || stand() == empty {
			t.Errorf("confirmed: %s", text)
		}
		w.refused("has changed meanwhile", "set_caps", with(caps(12), other))
		w.refused("unknown, was used", "set_caps", with(caps(10), code))
	})
}

// Time that passes between the two calls is no change: an instruction is stopped, whose report has its instant. What nothing
// was said of yet is changed too: the intent of a car.
func TestConfirm_UnderWay(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		w := open(t, url, true)
		confirm := func(tool string, arguments map[string]any) string {
			t.Helper()
			text, done := w.call(tool, with(arguments, w.confirmation(tool, arguments)))
			if !done {
				t.Fatalf("%s: %s", tool, text)
			}
			return text
		}

		begin := time.Now().Add(2 * time.Hour).UTC().Truncate(30 * time.Minute)
		end := begin.Add(time.Hour).Format(time.RFC3339)
		var sent struct{ Instruction struct{ ID string } }
		w.must(json.Unmarshal([]byte(confirm("send_instruction", map[string]any{"body": map[string]any{
			"change_kw": -10, "service": "dno", "reason": "peak", "start_timestamp": begin.Format(time.RFC3339), "end_timestamp": end,
		}})), &sent))

		if text := confirm("stop_instruction", map[string]any{"id": sent.Instruction.ID}); !strings.Contains(text, `"stopped"`) {
			t.Errorf("stopped: %s", text)
		}

		confirm("charge_now", map[string]any{"asset_id": w.assets[0], "body": map[string]any{"end_at": end}})
		confirm("change_intent", map[string]any{"asset_id": w.assets[0], "body": map[string]any{"intent": map[string]any{
			"energy_required_kwh": 10, "ready_by": end, "charging_mode": "minimise_charging_time",
		}}})
	})
}

// The oldest confirmation goes when too many wait.
func TestConfirm_Many(t *testing.T) {
	w := open(t, storetest.SQLite(t), true)
	arguments := map[string]any{"body": map[string]any{"fleet": map[string]any{"cap_kw": 10}}}
	first := w.confirmation("set_caps", arguments)
	second := w.confirmation("set_caps", arguments)
	for range mcp.MaxConfirmations - 1 {
		w.confirmation("set_caps", arguments)
	}
	w.refused("unknown, was used", "set_caps", with(arguments, first))
	if text, done := w.call("set_caps", with(arguments, second)); !done {
		t.Errorf("the second: %s", text)
	}
}

// Whatever an agent calls, nothing changes without a confirmation and nothing of another
// organisation shows: 300 random calls, 100,000 with FLEXD_LONG. A server that speaks for the
// other organisation is found out.
func TestRandomCalls(t *testing.T) {
	calls := 300
	if os.Getenv("FLEXD_LONG") != "" {
		calls = 100_000
	}

	w := open(t, storetest.SQLite(t), true)
	if fault := w.random(calls); fault != "" {
		t.Error(fault)
	}

	w.speaks = 1
	if w.random(calls) == "" {
		t.Error("another organisation's token was not noticed")
	}
}

// random makes random calls and returns the first that did what none may.
func (w *world) random(calls int) string {
	list, err := w.agent.ListTools(w.Context(), nil)
	w.must(err)
	draw := rand.New(rand.NewPCG(1, 2))
	before := w.state()
	ids := []any{w.sites[0], w.assets[0], w.sites[1], w.assets[1], "..", "", "%2e%2e%2f", 7, nil}

	for i := range calls {
		tool := list.Tools[draw.IntN(len(list.Tools))]
		schema := tool.InputSchema.(map[string]any)
		arguments := map[string]any{}

		for name := range schema["properties"].(map[string]any) {
			switch {
			case name == "body":
				arguments[name] = w.body(draw)
			case strings.HasSuffix(name, "id") && draw.IntN(10) > 0:
				arguments[name] = ids[draw.IntN(len(ids))]
			case draw.IntN(4) == 0:
				arguments[name] = ids[draw.IntN(len(ids))]
			}
		}

		text, _ := w.call(tool.Name, arguments)
		if secret := w.showsOther(text, arguments); secret != "" {
			return fmt.Sprintf("call %d, %s %v, shows %s", i, tool.Name, arguments, secret)
		}
		if i%100 == 99 || i == calls-1 {
			if after := w.state(); after != before {
				return fmt.Sprintf("up to call %d something changed: %s, before %s", i, after, before)
			}
		}
	}

	return ""
}

// body is a request that some tool may take.
func (w *world) body(draw *rand.Rand) any {
	begin := time.Now().Add(time.Hour).UTC().Truncate(30 * time.Minute)
	return []any{
		map[string]any{"fleet": map[string]any{"cap_kw": draw.IntN(100)}},
		map[string]any{"asset_ids": []any{w.assets[draw.IntN(2)]}},
		map[string]any{"action": selection.Kinds[draw.IntN(len(selection.Kinds))], "minutes": 60, "asset_ids": []any{w.assets[draw.IntN(2)]}},
		map[string]any{"change_kw": -draw.IntN(100), "start_timestamp": begin.Format(time.RFC3339), "end_timestamp": begin.Add(time.Hour).Format(time.RFC3339)},
		map[string]any{"timestamp": begin.Format(time.RFC3339)},
		map[string]any{}, "text", nil, []any{1},
	}[draw.IntN(9)]
}

// showsOther returns what an answer shows of the other organisation, but for what was in the call.
func (w *world) showsOther(text string, arguments map[string]any) string {
	said := fmt.Sprint(arguments)
	for _, id := range []string{w.sites[1].String(), w.assets[1].String(), w.orgs[1].ID.String(), w.orgs[1].Name} {
		if strings.Contains(text, id) && !strings.Contains(said, id) {
			return id
		}
	}
	return ""
}

// state counts what tools that change something would have made: at first there is none of it.
func (w *world) state() string {
	counts := []any{}
	for _, table := range []string{"instruction", "offer", "outbox", "session", "asset_event", "caps", "cap_group"} {
		counts = append(counts, table, w.seed.Count(`SELECT COUNT(*) FROM `+table))
	}
	return fmt.Sprint(counts...)
}
