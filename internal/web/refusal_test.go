package web_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// What net/http refuses by itself is JSON too, whole and of the length that it says; a handler's
// text stays text.
func TestServe_RefusalsAreJSON(t *testing.T) {
	text := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "400 Bad Request: not really")
	}

	for _, c := range []struct {
		name, request string
		status        int
		code          string // none where the answer is text
	}{
		{"a path that is none", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"no request at all", "hello\r\n\r\n", 400, "malformed"},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400, "malformed"},
		{"a version that is none", "GET / HTTP/3.7\r\nHost: x\r\n\r\n", 505, "malformed"},
		{"a long header", "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 80<<10) + "\r\n\r\n", 431, "too_large"},
		{"a handler's text", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, text, func(t *testing.T, dial func() net.Conn) {
				conn := dial()
				defer conn.Close()
				go io.WriteString(conn, c.request)

				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}

				b, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != c.status {
					t.Fatalf("%d %s %v", res.StatusCode, b, err)
				}

				var said struct{ Code, Detail string }
				isJSON := json.Unmarshal(b, &said) == nil
				if isJSON != (c.code != "") || said.Code != c.code {
					t.Errorf("%v %s", res.Header, b)
				}

				if isJSON && (res.Header.Get("Content-Type") != "application/json" || said.Detail == "") {
					t.Errorf("%v %s", res.Header, b)
				}
			})
		})
	}
}
