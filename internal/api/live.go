package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/wire"
)

// Limits of a stream of server-sent events.
const (
	// after which the client asks again, with a token that is good still
	streamLife  = 15 * time.Minute
	streamBeat  = 15 * time.Second // between two signs of life
	streamWrite = 10 * time.Second // for one event to leave
	// that a client is asked to wait before it asks again
	streamRetry = 2 * time.Second
)

// liveSite answers GET /entities/site/{site_id}/live: the site as it is, or a stream of how it
// changes.
func (s *Server) liveSite(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		now, err := s.Control.SiteNow(r.Context(), r.who.Org, p.SiteID)
		return ok(siteNowWire(now)), err
	}

	if r.Method == http.MethodHead { // who asks for the headers alone waits for no event
		_, err := s.Control.SiteNow(r.Context(), r.who.Org, p.SiteID)
		return answer{events: func(http.ResponseWriter) {}}, err
	}

	news, leave, err := s.Control.Follow(r.Context(), r.who.Org, p.SiteID)
	if err != nil {
		return answer{}, err
	}

	return answer{events: func(w http.ResponseWriter) {
		defer leave()
		s.sendEvents(r, w, news)
	}}, nil
}

// letIn reports whether the token that a stream was begun with lasts, and may be used from
// there: whose credential was revoked meanwhile is sent nothing more. A client whose stream
// ended asks again, and reads why where it may not.
func (s *Server) letIn(r *request) bool {
	_, err := s.identify(r)
	return err == nil
}

// sendEvents writes states as they come, until the client goes, its token ends, the server
// stops, the store does not answer or the stream has lived its life.
func (s *Server) sendEvents(
	r *request,
	w http.ResponseWriter,
	news <-chan control.SiteNow,
) {
	beat, end := time.NewTicker(streamBeat), time.NewTimer(streamLife)
	defer beat.Stop()
	defer end.Stop()

	text := fmt.Sprintf("retry: %d\n\n", streamRetry.Milliseconds())
	for id := 1; s.letIn(r) && sendText(w, text) == nil; {
		select {
		case <-r.Context().Done():
			return
		case <-s.Done:
			return
		case <-end.C:
			return

		case <-beat.C:
			text = ": nothing is new\n\n"

		case now, open := <-news:
			b, err := wire.Encode(siteNowWire(now))
			if !open || err != nil {
				return
			}
			text = fmt.Sprintf("event: site\nid: %d\ndata: %s\n\n", id, b)
			id++
		}
	}
}

// sendText writes a part of a stream at once.
func sendText(w http.ResponseWriter, text string) error {
	c := http.NewResponseController(w)
	// refused by test recorders alone
	c.SetWriteDeadline(time.Now().Add(streamWrite))
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}

	return c.Flush()
}

func siteNowWire(now control.SiteNow) wire.SiteNow {
	out := wire.SiteNow{
		SiteID: now.Site,
		AsOf:   wire.At(now.At),
		Assets: make([]wire.AssetNow, len(now.Assets)),
	}

	for i := range now.Assets {
		a := &now.Assets[i]
		out.Assets[i] = wire.AssetNow{
			AssetID:            a.ID,
			ExternalID:         a.ExternalID,
			Type:               a.Type,
			PluggedIn:          a.PluggedIn(),
			SessionID:          a.Session,
			PluggedInAt:        wire.At(a.PluggedInAt),
			PluggedOutAt:       wire.At(a.PluggedOutAt),
			ReadyBy:            wire.At(a.ReadyBy),
			EventID:            a.Schedule,
			Generation:         a.Generation,
			AcceptedGeneration: contract.Accepted(a.Accepted),
			ChargeNowUntil:     wire.At(a.ChargeNowTo),
			AwayUntil:          wire.At(a.AwayTo),
		}
	}

	return out
}
