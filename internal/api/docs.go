package api

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime"
	"path/filepath"
	"sync"

	"go.yaml.in/yaml/v2"

	"flexd/internal/flex"
)

//go:embed openapi.yaml
var document []byte

// swagger holds Swagger UI (Apache-2.0, see its LICENSE and NOTICE), so that the
// documentation works without any other host.
//
//go:embed swagger
var swagger embed.FS

// documentJSON is the document as JSON, in its own order.
var documentJSON = sync.OnceValues(func() ([]byte, error) {
	var tree yaml.MapSlice
	if err := yaml.Unmarshal(document, &tree); err != nil {
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
	return answer{body: text(b), tagged: true}, err
}

// docs answers GET /docs: the document as pages on which its operations can be tried.
func (s *Server) docs(r *request) (answer, error) {
	name := r.param("file")
	if name == "" {
		name = "index.html"
	}
	b, err := fs.ReadFile(swagger, "swagger/"+name)
	if err != nil {
		return answer{}, flex.Fail(flex.NotFound, "Not Found")
	}
	a := answer{body: text(b), tagged: true}
	a.set("Content-Type", contentType(name))
	a.set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'")
	return a, nil
}

func contentType(name string) string {
	if t := mime.TypeByExtension(filepath.Ext(name)); t != "" {
		return t
	}
	return "text/plain; charset=utf-8"
}
