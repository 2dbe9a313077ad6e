package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"flexd/internal/flex"
)

// CheckText refuses a request whose form cannot be read to its end, or whose address or form has text that no database keeps as it is:
// it is not UTF-8, or has the character of the number 0. Browsers send neither such text nor a part of a form, but a
// connection may break within one; without its fields a form may mean something else, such as all where it names a part.
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

	if err := readForm(r); err != nil {
		return err
	}

	return checkValues(r.PostForm)
}

// formMemory is how much of a form with files is kept in memory, as package http has it.
const formMemory = 32 << 20

// readForm reads the form, in either of its encodings. PostFormValue would do so too, and forget what was wrong.
func readForm(r *http.Request) error {
	err := r.ParseForm()
	if err == nil {
		err = r.ParseMultipartForm(formMemory)
	}

	if err == nil || errors.Is(err, http.ErrNotMultipart) {
		return nil
	}

	if long, is := errors.AsType[*http.MaxBytesError](err); is {
		return flex.Fail(flex.TooLarge, "a form has at most %d bytes", long.Limit)
	}

	return flex.Fail(flex.Malformed, "the form could not be read to its end: send it again")
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
