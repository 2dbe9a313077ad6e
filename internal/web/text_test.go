package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"flexd/internal/flex"
	"flexd/internal/web"
)

// A form that cannot be read to its end is no form without fields: what names a part would then mean all.
func TestCheckText_PartOfAForm(t *testing.T) {
	const urlencoded, parts = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
	cut := func(text string) io.Reader {
		return io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	long := http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("scope=organisation")), 8)

	for name, tt := range map[string]struct {
		kind string
		body io.Reader
		want flex.Kind
	}{
		"whole":              {urlencoded, strings.NewReader("scope=part"), flex.Internal}, // no error
		"no fields":          {urlencoded, strings.NewReader(""), flex.Internal},
		"no body":            {"", nil, flex.Internal},
		"cut":                {urlencoded, cut("scope=pa"), flex.Malformed},
		"a file that is cut": {parts, cut("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb"), flex.Malformed},
		"wrongly escaped":    {urlencoded, strings.NewReader("scope=%zz"), flex.Malformed},
		"too long":           {urlencoded, long, flex.TooLarge},
	} {
		r := httptest.NewRequest("POST", "/", tt.body)
		if tt.kind != "" {
			r.Header.Set("Content-Type", tt.kind)
		}

		err := web.CheckText(r)
		if wrong := tt.want != flex.Internal; wrong != (err != nil) || wrong && flex.KindOf(err) != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
