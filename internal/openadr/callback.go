package openadr

import (
	"net/http"
	"strings"

	"flexd/internal/adr"
	"flexd/internal/flex"
)

// Callback answers the calls of other parties' servers about changes, below adr.CallbackRoot.
func (s *Server) Callback() http.Handler {
	s.once.Do(s.build)

	return s.handle(route{
		path:   adr.CallbackRoot + "{id}",
		open:   true,
		handle: (*Server).callback,
	})
}

// callback makes the calling server be polled. The body is not read.
func (s *Server) callback(r *request) (answer, error) {
	if r.Method != http.MethodPost {
		return answer{http.StatusMethodNotAllowed, problem{
			Title:  http.StatusText(http.StatusMethodNotAllowed),
			Status: http.StatusMethodNotAllowed,
		}}, nil
	}

	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	program, err := adr.ParseID(strings.TrimPrefix(r.URL.Path, adr.CallbackRoot))
	if err != nil || !strings.EqualFold(scheme, "bearer") {
		return answer{}, flex.Fail(flex.Unauthorized, "call with the bearer token of the subscription")
	}

	err = s.ADR.HandleCallback(r.Context(), program, flex.Secret(token))

	return answer{http.StatusOK, struct{}{}}, err
}
