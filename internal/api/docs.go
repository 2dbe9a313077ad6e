package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v2"

	"flexd/internal/flex"
	"flexd/internal/guide"
)

//go:embed openapi.yaml
var openAPISource []byte

// documentJSON is the document as JSON, in its own order.
var documentJSON = sync.OnceValues(func() ([]byte, error) {
	var tree yaml.MapSlice
	if err := yaml.Unmarshal(openAPISource, &tree); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	var b bytes.Buffer
	err := appendJSON(&b, tree)
	return b.Bytes(), err
})

func appendJSON(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case yaml.MapSlice:
		b.WriteByte('{')

		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}

			if err := appendJSON(b, fmt.Sprint(item.Key)); err != nil {
				return err
			}

			b.WriteByte(':')

			if err := appendJSON(b, item.Value); err != nil {
				return err
			}
		}

		b.WriteByte('}')
	case []any:
		b.WriteByte('[')

		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}

			if err := appendJSON(b, item); err != nil {
				return err
			}
		}

		b.WriteByte(']')
	default:
		text, err := json.Marshal(v)
		b.Write(text)
		return err
	}

	return nil
}

// openAPI answers GET /openapi.json.
func (s *Server) openAPI(*request) (answer, error) {
	b, err := documentJSON()
	return answer{
		body:   s.documents.packed("openapi.json", b),
		tagged: true,
	}, err
}

// collection is the Postman collection of the document.
var collection = sync.OnceValues(func() ([]byte, error) {
	b, err := documentJSON()
	if err != nil {
		return nil, err
	}
	return guide.Postman(b)
})

// reference is the page of all operations.
var reference = sync.OnceValues(func() ([]byte, error) {
	b, err := documentJSON()
	if err != nil {
		return nil, err
	}
	return guide.Reference(b)
})

// guidePolicy lets pages of the documentation load only from this server.
const guidePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docs answers GET /docs and what is below it: the guides as pages and as Markdown, the
// collection, and the document as a page.
func (s *Server) docs(r *request) (answer, error) {
	name := r.param("file")

	switch name {
	case "":
		return s.page(name, "text/html; charset=utf-8", guide.Index()), nil

	case "guide.css":
		return s.page(name, "text/css; charset=utf-8", guide.Style), nil

	case "copy.js":
		return s.page(
			name,
			"text/javascript; charset=utf-8",
			guide.CopyScript,
		), nil

	case "postman.json":
		return s.postman(r)

	case "favicon-32x32.png":
		return s.page(name, "image/png", guide.Icon), nil

	case "reference":
		b, err := reference()
		return s.page(name, "text/html; charset=utf-8", b), err
	}

	if p, ok := guide.Find(name); ok {
		return s.page(name, "text/html; charset=utf-8", p.HTML()), nil
	}

	if p, ok := guide.Find(strings.TrimSuffix(name, ".md")); ok {
		return s.page(
			name,
			"text/markdown; charset=utf-8",
			[]byte(p.Source),
		), nil
	}

	return answer{}, flex.Fail(flex.NotFound, "Not Found")
}

// postman answers GET /docs/postman.json: the collection, with the address that it was asked at.
func (s *Server) postman(r *request) (answer, error) {
	b, err := collection()
	if err != nil {
		return answer{}, err
	}

	a := answer{
		body:   text(bytes.Replace(b, []byte(guide.PostmanBase), []byte(s.base(r)), 1)),
		tagged: true,
	} // names the host, so it is not packed once

	a.set("Content-Type", "application/json")
	a.set("Content-Security-Policy", guidePolicy)
	a.set(
		"Content-Disposition",
		`attachment; filename="flexd.postman_collection.json"`,
	)

	return a, nil
}

// page is an answer of the documentation, of a name that the documentation has.
func (s *Server) page(name, kind string, body []byte) answer {
	a := answer{
		body:   s.documents.packed(name, body),
		tagged: true,
	}

	a.set("Content-Type", kind)
	a.set("Content-Security-Policy", guidePolicy)

	return a
}

// llms answers GET /llms.txt.
func (s *Server) llms(r *request) (answer, error) {
	a := answer{
		body:   text(guide.LLMs(s.base(r))),
		tagged: true,
	} // names the host, so it is not packed once

	a.set("Content-Type", "text/plain; charset=utf-8")
	a.set("Content-Security-Policy", guidePolicy)

	return a, nil
}
