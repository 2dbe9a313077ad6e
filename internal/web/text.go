package web

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"flexd/internal/flex"
)

// CheckText refuses a request whose address or form has text that no database keeps as it is: it is not UTF-8, or has
// the character of the number 0. Browsers send neither.
func CheckText(r *http.Request) error {
	if !isKept(r.URL.Path) {
		return flex.Fail(flex.Malformed, "the address is not in UTF-8, or holds a character with the number 0")
	}

	if err := checkValues(r.URL.Query()); err != nil {
		return err
	}
	if r.Method != http.MethodPost {
		return nil
	}

	r.PostFormValue("") // reads the form, in either of its encodings

	return checkValues(r.PostForm)
}

func checkValues(values url.Values) error {
	for name, all := range values {
		if !isKept(name) || !isKept(strings.Join(all, "")) {
			return flex.Fail(
				flex.Malformed,
				"%.40q is not in UTF-8, or holds a character with the number 0",
				name,
			)
		}
	}

	return nil
}

func isKept(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
