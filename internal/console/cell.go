package console

import (
	"net/http"
	"slices"

	"flexd/internal/flex"
)

// CellPath is where an operator chooses the cell whose pages the console shows (docs/cells.md). The
// home cell answers it, so that one that is down can be left again.
const CellPath = Root + "/cell"

// The cookie that keeps the choice, named as that of the session is.
const (
	secureCell   = "__Host-flexd-cell"
	loopbackCell = "flexd-cell"
)

// CellOf returns the name of the cell that the request's operator chose, or "".
func (s *Server) CellOf(r *http.Request) string {
	name := secureCell
	if s.onLoopback(r) {
		name = loopbackCell
	}

	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}

	return c.Value
}

// chooseCell has the console show the pages of a cell.
func (s *Server) chooseCell(r *request) (view, error) {
	name := r.PostFormValue("name")
	if !slices.Contains(s.Cells, name) {
		return view{}, flex.Fail(flex.NotFound, "no cell is named %q", name)
	}

	c := &http.Cookie{
		Name:     secureCell,
		Value:    name,
		Path:     "/",
		Secure:   true,
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	}

	if s.onLoopback(r.Request) {
		c.Name, c.Secure = loopbackCell, false
	}

	http.SetCookie(r.w, c)

	return view{to: Root + "/"}, nil
}
