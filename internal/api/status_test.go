package api

import (
	"strings"
	"testing"

	"flexd/internal/guide"
)

// Every kind of failure has a status, a code, and a part of the guide to errors.
func TestCodes(t *testing.T) {
	page, _ := guide.Find("errors")
	for kind := range statusOf {
		if code := codeOf[kind]; code == "" || !strings.Contains(page.Source, "\n## "+code+"\n") {
			t.Errorf("kind %d has the code %q, which the guide does not explain", kind, code)
		}
	}
	if !strings.Contains(page.Source, "\n## "+wrongMethod+"\n") {
		t.Errorf("the guide does not explain %s", wrongMethod)
	}
	if len(codeOf) != len(statusOf) {
		t.Errorf("%d codes for %d kinds", len(codeOf), len(statusOf))
	}
}
