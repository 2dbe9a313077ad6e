package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// postmanCollection is what is read of a collection.
type postmanCollection struct {
	Variable []postmanPair
	Item     []struct {
		Name string
		Item []postmanCall
	}
}

type (
	postmanPair struct {
		Key, Value string
		Disabled   bool
	}
	postmanCall struct {
		Name  string
		Event []struct {
			Script struct{ Exec []string }
		}
		Request struct {
			Method string
			Auth   map[string]any
			Header []postmanPair
			URL    struct {
				Path            []string
				Query, Variable []postmanPair
			}
			Body struct {
				Raw        string
				Urlencoded []postmanPair
			}
		}
	}
)

// postman runs a collection as Postman does, with the features that ours uses: variables,
// tests of an answer, and values that are stored from an answer.
type postman struct {
	variables map[string]string
	faults    []string
	sent      int
}

func (p *postman) run(t *testing.T, c postmanCollection) {
	for _, v := range c.Variable {
		if p.variables[v.Key] == "" {
			p.variables[v.Key] = v.Value
		}
	}

	for _, folder := range c.Item {
		for _, call := range folder.Item {
			p.call(t, call)
		}
	}
}

var variable = regexp.MustCompile(`\{\{(\w+)\}\}`)

// fill puts the variables' values into a text.
func (p *postman) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string { return p.variables[strings.Trim(name, "{}")] })
}

func (p *postman) form(pairs []postmanPair) url.Values {
	v := url.Values{}
	for _, q := range pairs {
		if !q.Disabled {
			v.Set(q.Key, p.fill(q.Value))
		}
	}
	return v
}

// call sends a request, and does what its script says.
func (p *postman) call(t *testing.T, c postmanCall) {
	t.Helper()
	at := p.variables["baseUrl"]
	for _, part := range c.Request.URL.Path {
		if name, isVariable := strings.CutPrefix(part, ":"); isVariable {
			i := slices.IndexFunc(c.Request.URL.Variable, func(v postmanPair) bool { return v.Key == name })
			part = url.PathEscape(p.fill(c.Request.URL.Variable[i].Value))
		}
		at += "/" + part
	}

	body := p.fill(c.Request.Body.Raw)
	if form := p.form(c.Request.Body.Urlencoded); len(form) > 0 {
		body = form.Encode()
	}

	r, err := http.NewRequestWithContext(t.Context(), c.Request.Method, at+"?"+p.form(c.Request.URL.Query).Encode(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range c.Request.Header {
		if !h.Disabled {
			r.Header.Set(h.Key, p.fill(h.Value))
		}
	}
	if c.Request.Auth == nil { // the collection's
		r.Header.Set("Authorization", "Bearer "+p.variables["token"])
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

	p.sent++
	if err := p.script(c, answer.StatusCode, text); err != nil {
		p.faults = append(p.faults, fmt.Sprintf("%s: %s %s: %v: %d %s", c.Name, r.Method, r.URL.Path, err, answer.StatusCode, text))
	}
}

// The lines that our scripts consist of.
var (
	tests = regexp.MustCompile(`^pm\.test\("status", \(\) => pm\.expect\(pm\.response\.code\)\.to\.be\.oneOf\(\[([\d, ]+)\]\)\);$`)
	keeps = regexp.MustCompile(`^pm\.collectionVariables\.set\("(\w+)", pm\.response\.json\(\)([\w.\[\]]+?)(\.slice\(0, (\d+)\))?\);$`)
)

func (p *postman) script(c postmanCall, status int, text []byte) error {
	if len(c.Event) != 1 {
		return fmt.Errorf("%d scripts", len(c.Event))
	}

	for _, line := range c.Event[0].Script.Exec {
		if m := tests.FindStringSubmatch(line); m != nil {
			if !slices.Contains(strings.Split(m[1], ", "), strconv.Itoa(status)) {
				return fmt.Errorf("want one of %s", m[1])
			}
			continue
		}

		m := keeps.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("a line that this runner does not know: %s", line)
		}

		value, err := member(text, m[2])
		if err != nil {
			return err
		}
		if cut, err := strconv.Atoi(m[4]); err == nil {
			value = value[:min(cut, len(value))]
		}
		p.variables[m[1]] = value
	}

	return nil
}

// member is the text at a path such as ".assets[0].id" of a JSON.
func member(text []byte, path string) (string, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "", err
	}

	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch of := v.(type) {
		case map[string]any:
			v = of[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(of) {
				return "", fmt.Errorf("no %s", path)
			}
			v = of[i]
		}
	}

	value, isText := v.(string)
	if !isText || value == "" {
		return "", fmt.Errorf("no text at %s", path)
	}
	return value, nil
}

// startSandbox starts the program with an organisation acme in its own database, and returns
// its address.
func startSandbox(t *testing.T, password string) string {
	t.Helper()
	file := "sqlite:" + filepath.Join(t.TempDir(), "flexd.db")
	var said strings.Builder
	c := console{strings.NewReader(""), &said, &said}

	if code := run(t.Context(), []string{"org", "add", "Acme", "--username", "acme", "--password", password, "--environment", "sandbox", "--database", file}, c); code != 0 {
		t.Fatal(said.String())
	}

	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--environment", "sandbox", "--database", file, "--log-level", "error", "--listen", "127.0.0.1:0"}, console{strings.NewReader(""), in, io.Discard})
		in.Close()
	}()

	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("flexd ended with %d", code)
		}
	})

	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, found := strings.CutPrefix(lines.Text(), "listening on "); found {
			go io.Copy(io.Discard, out)
			return address
		}
	}

	t.Fatal("flexd does not listen")
	return ""
}

// TestCollection runs the whole Postman collection from a fresh sandbox: each answer has the
// status that the collection tests. A collection without its registration fails.
func TestCollection(t *testing.T) {
	t.Parallel()
	const password = "quick-start-secret"
	address := startSandbox(t, password)

	answer, err := http.Get(address + "/docs/postman.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()

	var c postmanCollection
	if err := json.NewDecoder(answer.Body).Decode(&c); err != nil {
		t.Fatal(err)
	}

	p := postman{variables: map[string]string{"username": "acme", "password": password}}
	p.run(t, c)
	for _, fault := range p.faults {
		t.Error(fault)
	}
	if p.sent < 90 {
		t.Errorf("%d requests", p.sent)
	}

	for i := range c.Item {
		c.Item[i].Item = slices.DeleteFunc(c.Item[i].Item, func(call postmanCall) bool {
			return slices.Equal(call.Request.URL.Path, []string{"entities", "site", "onboard"})
		})
	}
	planted := postman{variables: map[string]string{"username": "acme", "password": password}}
	planted.run(t, c)
	if len(planted.faults) == 0 {
		t.Error("without the onboarding it passed")
	}
}
