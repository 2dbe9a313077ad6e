package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http/httptest"
	"testing"
)

// A document is compressed and hashed once, however often it is asked for, and is the same
// zipped or not.
func TestDocuments_PackedOnce(t *testing.T) {
	s := &Server{}
	plain := bytes.Repeat([]byte("documentation "), 1000)
	first := s.documents.packed("page", plain)
	if s.documents.packed("page", plain) != first {
		t.Error("it is packed twice")
	}
	allocs := testing.AllocsPerRun(100, func() { s.documents.packed("page", plain) })
	if allocs > 1 {
		t.Errorf("%v allocations for a document that is packed", allocs)
	}

	for _, coding := range []string{"", "gzip"} {
		hr := httptest.NewRequest("GET", "/docs/page", nil)
		hr.Header.Set("Accept-Encoding", coding)
		w := httptest.NewRecorder()
		write(w, &request{Request: hr}, answer{body: first, tagged: true})
		body := io.Reader(w.Body)

		if coding != "" {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}

		if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, plain) || w.Header().Get("ETag") != first.tag {
			t.Errorf("by %q: %d bytes, tag %s, %v", coding, len(got), w.Header().Get("ETag"), err)
		}
	}
}
