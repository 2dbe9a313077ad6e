package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// plainHeader is how net/http continues, after the first line, where it answers by itself: when it
// cannot read a request's head at all. No handler's answer has this header and nothing else.
const plainHeader = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// refusalMax is longer than any such answer.
const refusalMax = 512

// refusal makes JSON of an answer that net/http writes by itself in plain text, so that every
// error of the service has one form. It returns nil for all else.
func refusal(written []byte) []byte {
	const first = "HTTP/1.1 "
	if len(written) > refusalMax || !bytes.HasPrefix(written, []byte(first)) {
		return nil
	}

	line, body, isOne := strings.Cut(string(written), plainHeader)
	if !isOne || strings.Contains(line, "\r") {
		return nil
	}

	_, detail, _ := strings.Cut(body, " ")

	code := "malformed"
	if strings.HasPrefix(body, "431") {
		code = "too_large"
	}

	text, err := json.Marshal(map[string]string{"code": code, "detail": detail})
	if err != nil {
		return nil
	}

	return fmt.Appendf(
		nil,
		"%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		line,
		len(text),
		text,
	)
}
