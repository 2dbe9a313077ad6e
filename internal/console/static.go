package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var staticFiles embed.FS

// static are the files that pages refer to, by path.
var static = func() map[string][]byte {
	m := map[string][]byte{}
	err := fs.WalkDir(
		staticFiles,
		"static",
		func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := staticFiles.ReadFile(name)
			m[strings.TrimPrefix(name, "static/")] = b
			return err
		},
	)
	if err != nil {
		panic(err) // the files are part of the program
	}
	return m
}()

// staticVersion changes with the files, so that a browser may cache them for ever. It is part
// of their path, because a module names its neighbours by relative path.
var staticVersion = func() string {
	h := sha256.New()
	err := fs.WalkDir(staticFiles, "static", func(name string, d fs.DirEntry, err error) error { // in the order of names
		if !d.IsDir() {
			h.Write([]byte(name))
			h.Write(static[strings.TrimPrefix(name, "static/")])
		}
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}

	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}()

// asset is the address of a static file.
func staticPath(name string) string {
	return Root + "/static/" + staticVersion + "/" + name
}

// serveStatic answers VERSION/NAME.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	version, name, _ := strings.Cut(r.URL.Path, "/")
	b, ok := static[name]
	if !ok {
		http.NotFound(w, r)
		return
	}

	if version == staticVersion {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}

	http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(b))
}
