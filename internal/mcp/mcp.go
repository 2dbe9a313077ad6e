package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flexd/internal/flex"
)

// MaxResult is the most bytes of one tool's answer: some 60,000 tokens of a model.
const MaxResult = 256 << 10

// MaxArguments is the most bytes of one call's arguments.
const MaxArguments = 64 << 10

// loggedMax is the most bytes of a call's arguments that are written down.
const loggedMax = 500

// Settings are what a server works on.
type Settings struct {
	Version string
	API     http.Handler // the interface itself
	Org     flex.OrgID   // whose agent it is; over HTTP each organisation has a number of them

	Household bool // whether it is one of a household of the organisation

	// Token gives a token of the organisation that is good for the next minute at least.
	Token func(ctx context.Context) (flex.Secret, error)
	// Halted says why pushes are halted, or nothing if they are not.
	Halted func(ctx context.Context) (string, error)
	// Act does something that is written in the audit log.
	Act func(ctx context.Context, tool, arguments string, do func() error) error

	// From is the address that calls come from; this process itself if empty.
	From string

	Write bool             // whether tools that change something are offered
	Now   func() time.Time // the true clock if nil
	// what failed within flexd; the default logger if nil
	Log *slog.Logger
}

// Server answers one agent.
type Server struct {
	Settings

	waiting confirmations
}

// New reads the document and returns the server of the protocol.
func New(s Settings) (*sdk.Server, error) {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Log == nil {
		s.Log = slog.Default()
	}

	doc, err := readDocument(s.API)
	if err != nil {
		return nil, err
	}

	server := &Server{Settings: s}
	protocol := sdk.NewServer(
		&sdk.Implementation{
			Name:    "flexd",
			Title:   "flexd: energy flexibility",
			Version: s.Version,
		},
		&sdk.ServerOptions{
			Instructions: "flexd plans charging and battery schedules of homes. Instants are ISO 8601 in UTC, powers kW, energies kWh, prices GBP/MWh unless a field says otherwise. Begin with list_exceptions. Explain a plan with explain_schedule; try a change with what_if.",
		},
	)

	for _, t := range tools {
		if t.dryRun != nil && !s.Write {
			continue
		}

		if err := server.offer(protocol, &doc, t); err != nil {
			return nil, err
		}
	}

	return protocol, nil
}

// offer adds a tool to the protocol's server, with the schema of its arguments.
func (s *Server) offer(protocol *sdk.Server, doc *document, t tool) error {
	of, err := doc.describe(t)
	if err != nil {
		return err
	}

	schema, err := of.standalone()
	if err != nil {
		return err
	}

	changes, closed := t.dryRun != nil, false
	marks := &sdk.ToolAnnotations{
		ReadOnlyHint:    !changes,
		DestructiveHint: &changes,
		OpenWorldHint:   &closed,
	}

	shown := &sdk.Tool{
		Name:        t.name,
		Description: of.text,
		InputSchema: schema,
		Annotations: marks,
	}

	protocol.AddTool(
		shown,
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return s.call(ctx, &of, r.Params.Arguments), nil
		},
	)

	return nil
}

// call makes one call of a tool. Whatever goes wrong is an answer that the model can read.
func (s *Server) call(
	ctx context.Context,
	t *described,
	raw json.RawMessage,
) *sdk.CallToolResult {
	var text string

	err := s.Act(ctx, t.name, t.logged(raw), func() error {
		var err error
		text, err = s.do(ctx, t, raw)
		return err
	})

	shown, ok := errors.AsType[*flex.Error](err)
	if ok && shown.Kind != flex.Internal {
		return failed(shown.Error())
	}
	if err != nil {
		s.Log.Error("a tool's call failed", "tool", t.name, "error", err)
		return failed("flexd failed, and its log says why")
	}

	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{
		Text: text,
	}}}
}

// personal are the arguments that say who lives where. The audit log, of which nothing is ever erased, has that they were
// given, and not what they were.
var personal = []string{"mpan", "postcode"}

// logged are the arguments of a call as the audit log has them: nothing of what is no argument of the tool.
func (t *described) logged(raw json.RawMessage) string {
	var arguments map[string]json.RawMessage
	if len(raw) > MaxArguments || json.Unmarshal(raw, &arguments) != nil {
		return ""
	}

	known := t.known()
	for name := range arguments {
		if !slices.Contains(known, name) {
			delete(arguments, name)
		} else if slices.Contains(personal, name) {
			arguments[name] = json.RawMessage(`"[redacted]"`)
		}
	}

	text, err := json.Marshal(arguments)
	if err != nil {
		return ""
	}

	// whole characters, which every database keeps: what cannot be written down is not done
	return strings.ToValidUTF8(string(text[:min(len(text), loggedMax)]), "")
}

func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{
		IsError: true,
		Content: []sdk.Content{&sdk.TextContent{Text: text}},
	}
}

// do reads the arguments, and reads, previews or changes.
func (s *Server) do(
	ctx context.Context,
	t *described,
	raw json.RawMessage,
) (string, error) {
	if len(raw) > MaxArguments {
		return "", flex.Fail(
			flex.Invalid,
			"the arguments have %d bytes; %d are the most",
			len(raw),
			MaxArguments,
		)
	}

	arguments := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &arguments); err != nil {
			return "", flex.Fail(
				flex.Invalid,
				"the arguments are no JSON object",
			)
		}
	}

	if err := t.check(arguments); err != nil {
		return "", err
	}

	dropNulls(arguments)
	if t.dryRun == nil {
		return s.ask(ctx, t.method, t.path, "", t, arguments)
	}

	if why, err := s.Halted(ctx); err != nil {
		return "", err
	} else if why != "" {
		return "", flex.Fail(
			flex.Conflict,
			"pushes are halted (%s): nothing is changed by an agent until an operator ends that",
			why,
		)
	}

	code := arguments[confirmation]
	delete(arguments, confirmation)
	if code == nil || string(code) == `""` {
		return s.preview(ctx, t, arguments)
	}

	return s.confirm(ctx, t, arguments, code)
}

// dropNulls takes out the arguments that are null: agents write what they leave out so, too. A body that is null is one.
func dropNulls(arguments map[string]json.RawMessage) {
	maps.DeleteFunc(arguments, func(name string, raw json.RawMessage) bool {
		return name != "body" && string(raw) == "null"
	})
}

// known are the names of the tool's arguments.
func (t *described) known() []string {
	known := slices.Concat(t.inPath, t.query)
	if t.body {
		known = append(known, "body")
	}
	if t.dryRun != nil {
		known = append(known, confirmation)
	}

	return known
}

// check names the first argument that the tool does not have.
func (t *described) check(arguments map[string]json.RawMessage) error {
	known := t.known()
	for name := range arguments {
		if !slices.Contains(known, name) {
			return flex.Fail(
				flex.Invalid,
				"%s has no argument %q; it has %s",
				t.name,
				name,
				strings.Join(known, ", "),
			)
		}
	}

	return nil
}

// preview answers what a change would do, and what confirms it.
func (s *Server) preview(
	ctx context.Context,
	t *described,
	arguments map[string]json.RawMessage,
) (string, error) {
	shown, err := s.show(ctx, t, arguments)
	if err != nil {
		return "", err
	}

	until := s.Now().Add(ConfirmationLife)
	code := s.waiting.add(waiting{
		tool:  t.name,
		asked: digest(arguments),
		shown: t.dryRun.compared(shown),
		until: until,
	})

	name := "would_do"
	if t.dryRun.showsCurrent() {
		name = "stands_today"
	}

	answer, err := json.Marshal(object{
		"done":       false,
		name:         json.RawMessage(shown),
		confirmation: code,
		"expires_at": until.UTC().Format(time.RFC3339),
		"next":       "call " + t.name + " again with the same arguments and this confirmation",
	})

	return string(answer), err
}

// show makes the dry run. What the change may lack, and is not there yet, is null.
func (s *Server) show(
	ctx context.Context,
	t *described,
	arguments map[string]json.RawMessage,
) (string, error) {
	shown, err := s.ask(
		ctx,
		t.dryRun.method,
		t.dryRun.path,
		t.dryRun.query,
		t,
		arguments,
	)
	if flex.KindOf(err) == flex.NotFound && t.dryRun.mayLack {
		return "null", nil
	}

	return shown, err
}

// confirm makes a change whose preview gave the confirmation.
func (s *Server) confirm(
	ctx context.Context,
	t *described,
	arguments map[string]json.RawMessage,
	code json.RawMessage,
) (string, error) {
	var given string
	if err := json.Unmarshal(code, &given); err != nil {
		return "", flex.Fail(
			flex.Invalid,
			"the confirmation is no text: leave it out to get one",
		)
	}

	w, good := s.waiting.take(given, s.Now())
	if !good {
		return "", flex.Fail(
			flex.Conflict,
			"the confirmation is unknown, was used or is older than %s: call without it to get another",
			ConfirmationLife,
		)
	}

	if w.tool != t.name || w.asked != digest(arguments) {
		return "", flex.Fail(
			flex.Conflict,
			"the confirmation is for another call (%s, with other arguments): call without it to get one for this",
			w.tool,
		)
	}

	if t.dryRun.showsCurrent() {
		today, err := s.show(ctx, t, arguments)
		if err != nil {
			return "", err
		}

		if t.dryRun.compared(today) != w.shown {
			return "", flex.Fail(
				flex.Conflict,
				"what was shown has changed meanwhile: call without the confirmation to see it",
			)
		}
	}

	return s.ask(ctx, t.method, t.path, "", t, arguments)
}

// compared is the same as long as what was shown stands.
func (d *dryRun) compared(shown string) [sha256.Size]byte {
	part := []byte(shown)
	if d.member != "" {
		var members map[string]json.RawMessage
		if json.Unmarshal(part, &members) == nil {
			part = members[d.member]
		}
	}

	return sha256.Sum256(part)
}

// digest is the same for the same arguments: JSON objects are written with sorted names.
func digest(arguments map[string]json.RawMessage) [sha256.Size]byte {
	plain := object{}
	for name, raw := range arguments {
		var v any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&v) == nil {
			plain[name] = v
		}
	}

	b, _ := json.Marshal(plain) // of what was decoded

	return sha256.Sum256(b)
}

// ask makes one request of the interface and returns the body of its answer.
func (s *Server) ask(
	ctx context.Context,
	method, path, query string,
	t *described,
	arguments map[string]json.RawMessage,
) (string, error) {
	own := method == t.method
	where, err := t.address(path, query, own, arguments)
	if err != nil {
		return "", err
	}

	var body json.RawMessage
	if t.body && own {
		body = arguments["body"]
	}

	w, err := s.request(ctx, method, where, body)
	if err != nil {
		return "", err
	}

	text := strings.TrimSpace(w.body.String())
	if w.code == http.StatusNotFound {
		return "", flex.Fail(flex.NotFound, "404: %s", text)
	}

	if w.code >= http.StatusMultipleChoices {
		return "", flex.Fail(flex.Invalid, "%d: %s", w.code, text)
	}

	if len(text) > MaxResult {
		return "", flex.Fail(
			flex.Invalid,
			"the answer has %d bytes; %d are the most: ask for a shorter time or a smaller limit",
			len(text),
			MaxResult,
		)
	}

	return cmp.Or(text, "{}"), nil
}

// request calls the interface's handler as the organisation.
func (s *Server) request(
	ctx context.Context,
	method, where string,
	body json.RawMessage,
) (*recorder, error) {
	token, err := s.Token(ctx)
	if err != nil {
		return nil, err
	}

	r, err := http.NewRequestWithContext(
		ctx,
		method,
		where,
		bytes.NewReader(body),
	)

	if err != nil {
		return nil, flex.Fail(
			flex.Invalid,
			"the arguments make no request: %v",
			err,
		)
	}

	r.RemoteAddr = cmp.Or(s.From, inProcess)
	r.RequestURI = where
	r.Header.Set("Authorization", "Bearer "+token.Reveal())
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}

	w := &recorder{header: http.Header{}, code: http.StatusOK}
	s.API.ServeHTTP(w, r)

	return w, nil
}

// inProcess is where calls seem to come from: the handler is called in this process.
const inProcess = "127.0.0.1:0"

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(code int)        { w.code = code }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// address is the request's path and query.
func (t *described) address(
	path, extra string,
	own bool,
	arguments map[string]json.RawMessage,
) (string, error) {
	for _, name := range t.inPath {
		value, err := plain(name, arguments[name])
		if err != nil {
			return "", err
		}
		if value == "" {
			return "", flex.Fail(flex.Invalid, "%s needs %s", t.name, name)
		}
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}

	query, err := url.ParseQuery(extra)
	if err != nil {
		return "", err
	}

	for _, name := range t.query {
		if !own || arguments[name] == nil {
			continue
		}
		if err := addValues(query, name, arguments[name]); err != nil {
			return "", err
		}
	}

	if len(query) > 0 {
		path += "?" + query.Encode()
	}

	return path, nil
}

// addValues adds a query's parameter, once for each value of a list.
func addValues(query url.Values, name string, raw json.RawMessage) error {
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			return flex.Fail(flex.Invalid, "%s is no list", name)
		}
	}

	for _, one := range list {
		value, err := plain(name, one)
		if err != nil {
			return err
		}
		query.Add(name, value)
	}

	return nil
}

// plain is a JSON text, number or truth value as a URL has it.
func plain(name string, raw json.RawMessage) (string, error) {
	if len(raw) == 0 {
		return "", nil
	}

	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	if raw[0] == '{' || raw[0] == '[' {
		return "", flex.Fail(
			flex.Invalid,
			"%s is a text, a number, true or false",
			name,
		)
	}

	return string(raw), nil
}
