package console_test

import (
	"net/http"
	"strings"
	"testing"

	"flexd/internal/guide"
)

// The guides keep the rules of the console's screens.
func TestBrowser_Guides(t *testing.T) {
	d := newConsole(t, sceneNow)
	d.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/docs"), "/")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch p, ok := guide.Find(name); {
		case ok:
			w.Write(p.HTML())
		case name == "":
			w.Write(guide.Index())
		case name == "guide.css":
			w.Header().Set("Content-Type", "text/css; charset=utf-8")
			w.Write(guide.Style)
		default:
			w.WriteHeader(http.StatusNoContent) // the icon, which is not a guide
		}
	})
	b := browse(d)
	b.screen("guides", "/docs")
	for _, p := range guide.Pages {
		b.screen("guide-"+p.Name, "/docs/"+p.Name)
	}
}
