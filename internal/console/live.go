package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Limits of streams.
const (
	streamsMax  = 64 // open at once
	streamEvery = 2 * time.Second
	streamWrite = 10 * time.Second // for one event to leave
	// after which the browser asks again, and shows its session again
	streamLife = time.Hour
)

// stream sends the values of next as server-sent events whenever they change. It ends when the
// client disconnects, the server stops, the session ends or the stream reaches its time limit.
func (s *Server) stream(r *request, next func() (any, error)) (view, error) {
	if r.Method == http.MethodHead { // who asks for the headers alone waits for no event
		r.w.Header().Set("Content-Type", "text/event-stream")
		return view{}, nil
	}

	if s.streams.Add(1) > streamsMax {
		s.streams.Add(-1)
		return view{}, flex.Fail(
			flex.TooMany,
			"%d pages are watching already",
			streamsMax,
		)
	}

	defer s.streams.Add(-1)
	w := r.w
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or a proxy would keep it back
	control := http.NewResponseController(w)
	tick, end := time.NewTicker(streamEvery), time.NewTimer(streamLife)
	defer tick.Stop()
	defer end.Stop()
	var last string

	for {
		v, err := next()
		if err != nil {
			return view{}, err
		}

		b, err := json.Marshal(v)
		if err != nil {
			return view{}, err
		}

		// refused by test recorders alone
		control.SetWriteDeadline(time.Now().Add(streamWrite))
		// nothing is new, and the page knows that it is live
		text := "event: beat\ndata: 1\n\n"

		if string(b) != last {
			last, text = string(b), fmt.Sprintf("data: %s\n\n", b)
		}

		if _, err := w.Write([]byte(text)); err != nil {
			return view{}, nil // the client has gone
		}
		if control.Flush() != nil {
			return view{}, nil
		}

		if !s.continues(r, tick.C, end.C) {
			return view{}, nil
		}
	}
}

// continues waits for the next tick of a stream, and reports whether the stream continues. The
// browser opens an ended stream again, and gets an error if it may not.
func (s *Server) continues(r *request, tick, end <-chan time.Time) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-s.Done:
		return false
	case <-end:
		return false
	case <-tick:
		return s.sameOperator(r)
	}
}

// sameOperator reports whether the stream's session is still valid, and its operator still has
// the same organisations. Nothing more is sent to an operator who is logged out or removed.
func (s *Server) sameOperator(r *request) bool {
	operator, err := s.Access.IdentifyOperator(r.Context(), s.sessionOf(r.Request))
	if err != nil {
		return false
	}

	return operator.SomeOrgs == r.operator.SomeOrgs && slices.Equal(operator.Orgs, r.operator.Orgs)
}

// fleetLive answers the stream of the fleet page's numbers.
func (s *Server) fleetLive(r *request) (view, error) {
	return s.stream(r, func() (any, error) {
		p, err := s.fleetPage(r)
		if err != nil {
			return nil, err
		}
		return p.numbers(), nil
	})
}
