package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

// document is a body that is the same for everybody: it is compressed and hashed once, for
// anybody may ask for it as often as the rate allows.
type document struct {
	plain  []byte
	zipped []byte
	tag    string
}

// documents are those that were asked for, by name. There are as many as the documentation has
// pages.
type documents struct{ byName sync.Map }

// packed returns the document of that name, whose text never changes while the program runs.
func (d *documents) packed(name string, plain []byte) *document {
	if kept, ok := d.byName.Load(name); ok {
		return kept.(*document)
	}

	kept, _ := d.byName.LoadOrStore(name, pack(plain))

	return kept.(*document)
}

func pack(plain []byte) *document {
	doc := &document{plain: plain, tag: tagOf(plain)}
	if len(plain) < gzipMin {
		return doc
	}

	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that exists
	z.Write(plain)                                        // into memory
	z.Close()
	doc.zipped = b.Bytes()

	return doc
}

// tagOf is the entity tag of a body.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}
