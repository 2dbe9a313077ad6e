package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// unreserved are the characters that need no percent-encoding anywhere in a URL.
const unreserved = idChars + "~"

var percentEncoded = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// plainPaths decodes in paths what is percent-encoded without need: by RFC 3986, 6.2.2.2, that is the same path, and routers compare
// paths as they are written.
func plainPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := r.URL; u.RawPath != "" {
			u.RawPath = decodeUnreserved(u.RawPath)
			usual := url.URL{Path: u.Path}
			if u.RawPath == usual.EscapedPath() {
				u.RawPath = ""
			}
		}

		next.ServeHTTP(w, r)
	})
}

// decodeUnreserved decodes the unreserved characters of an encoded path, and no others.
func decodeUnreserved(path string) string {
	return percentEncoded.ReplaceAllStringFunc(path, func(code string) string {
		plain, err := url.PathUnescape(code)
		if err != nil || strings.Trim(plain, unreserved) != "" {
			return code
		}

		return plain
	})
}
