package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"flexd/internal/guide"
)

// The guides keep the rules of the console's screens.
func TestBrowser_Guides(t *testing.T) {
	d := newConsole(t, sceneNow)
	doc, err := openapi3.NewLoader().LoadFromFile("../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}

	text, err := doc.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	reference, err := guide.Reference(text)
	if err != nil {
		t.Fatal(err)
	}

	d.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/docs"), "/")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")

		switch p, ok := guide.Find(name); {
		case ok:
			w.Write(p.HTML())
		case name == "":
			w.Write(guide.Index())
		case name == "reference":
			w.Write(reference)
		case name == "guide.css":
			w.Header().Set("Content-Type", "text/css; charset=utf-8")

			w.Write(guide.Style)
		default:
			w.WriteHeader(http.StatusNoContent) // the icon, which is not a guide
		}
	})

	b := browse(d)
	b.screen("guides", "/docs")
	b.screen("reference", "/docs/reference")
	for _, p := range slices.Concat(guide.Pages, guide.Manual) {
		b.screen("guide-"+p.Name, "/docs/"+p.Name)
	}
}
