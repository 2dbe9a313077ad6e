package api

import (
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/guide"
	"flexd/internal/web"
)

// The guide to errors explains the code of every kind of failure.
func TestCodes(t *testing.T) {
	page, _ := guide.Find("errors")
	for kind := flex.Internal; kind <= flex.TimedOut; kind++ {
		if code := web.CodeOf(kind); !strings.Contains(page.Source, "\n## "+code+"\n") {
			t.Errorf("kind %d has the code %q, which the guide does not explain", kind, code)
		}
	}
	if !strings.Contains(page.Source, "\n## "+wrongMethod+"\n") {
		t.Errorf("the guide does not explain %s", wrongMethod)
	}
}
