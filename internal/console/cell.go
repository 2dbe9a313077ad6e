package console

import (
	"net/http"
	"slices"

	"flexd/internal/flex"
)

// CellPath is the page where an operator chooses the cell that the console shows
// (docs/cells.md). The home cell serves it, so that another cell can be chosen if one is down.
const CellPath = Root + "/cell"

// The cookie with the chosen cell, named like the session's.
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

// chooseCell sets the cell whose pages the console shows.
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
