package portal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	placeholder = regexp.MustCompile(`\{\d\}`)
	action      = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	tag         = regexp.MustCompile(`(?s)<[^>]*>`)
	spoken      = regexp.MustCompile(`\bt "((?:[^"\\]|\\.)*)"`)
	attribute   = regexp.MustCompile(`(?:aria-label|title|alt|placeholder)="[^"]*[a-zA-Z]`)
)

// sources returns the texts of the files that match a pattern, without tests.
func sources(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}

	texts := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(b)
	}
	return texts
}

// saidInGo returns the messages that a Go file says, and those that the maps of messages hold.
func saidInGo(t *testing.T, name, text string) (messages []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		t.Fatal(err)
	}

	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}

		method, is := call.Fun.(*ast.SelectorExpr)
		if !is || !slices.Contains([]string{"say", "when"}, method.Sel.Name) {
			return true
		}

		for _, arg := range call.Args {
			if text, is := arg.(*ast.BasicLit); is && text.Kind == token.STRING {
				message, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}

				messages = append(messages, message)
				break
			}
		}

		return true
	})

	return messages
}

// messages are all that the pages can say.
func messages(t *testing.T) []string {
	t.Helper()
	var all []string
	for name, text := range sources(t, "*.go") {
		all = append(all, saidInGo(t, name, text)...)
	}

	for _, text := range sources(t, "template/*.html") {
		for _, found := range spoken.FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
	}

	for _, text := range done {
		all = append(all, text)
	}

	for _, text := range statuses {
		all = append(all, text)
	}

	for _, text := range modes {
		all = append(all, text)
	}

	for _, text := range assetNames {
		all = append(all, text)
	}

	for _, words := range consentTexts {
		all = append(all, words.Name, words.Without)
	}

	slices.Sort(all)

	return slices.Compact(all)
}

// Every message is in every language with the same placeholders, and no language has one that nobody says.
func TestSpeech_Whole(t *testing.T) {
	all := messages(t)
	if len(all) < 150 {
		t.Fatalf("%d messages were found, which cannot be all", len(all))
	}

	for _, l := range speeches[1:] {
		for _, message := range all {
			other, known := l.words[message]
			if !known || other == "" {
				t.Errorf("%s lacks %q", l.tag, message)
			}
			if want, got := placeholders(message), placeholders(other); known && !slices.Equal(want, got) {
				t.Errorf("%s: %q puts in %v, want %v", l.tag, other, got, want)
			}
		}

		for message := range l.words {
			if _, found := slices.BinarySearch(all, message); !found {
				t.Errorf("%s has %q, which nobody says", l.tag, message)
			}
		}
	}
}

func placeholders(text string) []string {
	found := placeholder.FindAllString(text, -1)
	slices.Sort(found)
	return found
}

// unspoken returns what words a template has that are no messages.
func unspoken(text string) (words []string) {
	words = attribute.FindAllString(action.ReplaceAllString(text, ""), -1)
	text = tag.ReplaceAllString(action.ReplaceAllString(text, ""), " ")
	for _, word := range strings.Fields(text) {
		if strings.ContainsAny(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz") && strings.Trim(word, ".,;") != "kWh" {
			words = append(words, word)
		}
	}
	return words
}

// No template has words of its own but a unit.
func TestSpeech_Templates(t *testing.T) {
	for name, text := range sources(t, "template/*.html") {
		if words := unspoken(text); len(words) > 0 {
			t.Errorf("%s has words of its own: %q", name, words)
		}
	}

	for _, planted := range []string{`<p>Hello</p>`, `<p>{{t "a"}} and {{t "b"}}</p>`, `<nav aria-label="Pages">`} {
		if len(unspoken(planted)) == 0 {
			t.Errorf("%s passes", planted)
		}
	}
}

// The language is the link's, else what the browser keeps of it, else the first that it accepts.
func TestSpeechOf(t *testing.T) {
	for _, tt := range []struct{ query, cookie, accept, want string }{
		{"", "", "", "en"},
		{"", "", "de-AT,en;q=0.5", "de"},
		{"", "", "fr, de;q=0.7", "de"},
		{"", "", "fr", "en"},
		{"", "de", "en", "de"},
		{"", "x", "en", "en"},
		{"?lang=de", "", "en", "de"},
		{"?lang=en", "de", "de", "en"},
		{"?lang=fr", "", "de", "de"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/balance/x"+tt.query, nil)
		r.Header.Set("Accept-Language", tt.accept)
		if tt.cookie != "" {
			r.AddCookie(&http.Cookie{Name: languageCookie, Value: tt.cookie})
		}

		w := httptest.NewRecorder()
		if got := speechOf(w, r); got.tag != tt.want {
			t.Errorf("%+v: %s", tt, got.tag)
		}

		kept := strings.Contains(w.Header().Get("Set-Cookie"), languageCookie)
		if asked := tt.query != "" && tt.query != "?lang=fr"; kept != asked {
			t.Errorf("%+v: kept %v", tt, kept)
		}
	}
}
