package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// stream is a site that is followed.
type stream struct {
	*testing.T
	lines  *bufio.Scanner
	answer *http.Response
}

// follow opens a stream of the site, as whom the header says.
func (h *homestead) follow(site, authorization string) *stream {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 2*time.Minute)
	h.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", h.url+"/entities/site/"+site+"/live", nil)
	if err != nil {
		h.Fatal(err)
	}

	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", authorization)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}

	h.Cleanup(func() { resp.Body.Close() })
	return &stream{h.T, bufio.NewScanner(resp.Body), resp}
}

// next waits for a state that is as wanted.
func (s *stream) next(what string, wanted func(wire.SiteNow) bool) {
	s.Helper()
	for s.lines.Scan() {
		data, isData := strings.CutPrefix(s.lines.Text(), "data: ")
		var now wire.SiteNow
		if isData && json.Unmarshal([]byte(data), &now) == nil && wanted(now) {
			return
		}
	}
	s.Fatalf("the stream ended before %s: %v", what, s.lines.Err())
}

// TestLive follows a site with its own component token through an evening: each change comes without being
// asked for, a second follower has the same, another site's is not found, and the stream ends with the server.
func TestLive(t *testing.T) {
	h := settleIn(t)
	done := make(chan struct{})
	h.server.Done = done
	there := h.place()
	site, asset := there["SITE"], there["ASSET"]

	var now wire.SiteNow
	snapshot := h.want("GET", "/entities/site/"+site+"/live", "", 200, "")
	if err := json.Unmarshal([]byte(snapshot.body), &now); err != nil || now.SiteID.String() != site || len(now.Assets) == 0 {
		t.Fatalf("%v: %s", err, snapshot.body)
	}

	of := func(now wire.SiteNow) wire.AssetNow {
		for _, a := range now.Assets {
			if a.AssetID.String() == asset {
				return a
			}
		}
		t.Fatalf("no asset %s in %+v", asset, now)
		return wire.AssetNow{}
	}

	first, second := h.follow(site, "Bearer "+h.token), h.follow(site, "Bearer "+h.token)
	if kind := first.answer.Header.Get("Content-Type"); kind != "text/event-stream" || first.answer.Header.Get("Content-Encoding") != "" {
		t.Errorf("a stream is %s", kind)
	}

	for _, s := range []*stream{first, second} {
		s.next("its first state", func(n wire.SiteNow) bool { return of(n).PluggedIn && of(n).Generation > 0 })
	}

	h.want("POST", "/entities/asset/"+asset+"/event/charge-now", `{"end_at":"`+there["SOON"]+`"}`, 200, "")
	for _, s := range []*stream{first, second} {
		s.next("charging at once", func(n wire.SiteNow) bool { return !of(n).ChargeNowUntil.IsZero() })
	}

	h.want("POST", "/entities/asset/"+asset+"/event/plug-out", "{}", 200, "")
	first.next("the end of the session", func(n wire.SiteNow) bool {
		a := of(n)
		return !a.PluggedIn && !a.PluggedOutAt.IsZero() && a.Generation == 0
	})

	_, other := h.newOrg("Other", "other")
	if s := h.follow(site, "Bearer "+other); s.answer.StatusCode != 404 {
		t.Errorf("another organisation follows the site: %d", s.answer.StatusCode)
	}

	close(done)
	for second.lines.Scan() { // ends, as the server stops
	}
	h.streamsAreApart()
}

// streamsAreApart holds that the time of two streams is in a figure of its own, and not in that of answers.
func (h *homestead) streamsAreApart() {
	h.Helper()
	const route = `route="/entities/site/{site_id}/live"`
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		text := h.want("GET", "/metrics", "", 200, "", "Authorization:").body
		streams := strings.Contains(text, "flexd_stream_seconds_count{"+route+"} 2")
		answers := strings.Contains(text, `flexd_request_seconds_count{method="GET",`+route+"} 2") // the state, and the one not found
		if streams && answers {
			return
		}

		if time.Now().After(until) { // a stream is counted after its end, which its reader sees first
			h.Fatalf("streams counted: %t, answers counted apart: %t", streams, answers)
		}
	}
}

// TestLive_Revoked: a stream ends with the token that it was begun with, and nothing that happens afterwards is sent on it.
func TestLive_Revoked(t *testing.T) {
	h := settleIn(t)
	there := h.place()
	site, err := flex.ParseID[struct{}](there["SITE"])
	if err != nil {
		t.Fatal(err)
	}

	asset, err := flex.ParseID[struct{}](there["ASSET"])
	if err != nil {
		t.Fatal(err)
	}

	s := h.follow(there["SITE"], "Bearer "+h.token)
	s.next("its first state", func(wire.SiteNow) bool { return true })
	if err := h.server.Access.Revoke(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}

	wish := control.Wish{ChargeFor: time.Hour}
	err = h.server.Control.Wish(t.Context(), h.org.ID, flex.SiteID(site), flex.AssetID(asset), wish)
	if err != nil {
		t.Fatal(err)
	}

	for s.lines.Scan() {
		data, isData := strings.CutPrefix(s.lines.Text(), "data: ")
		var now wire.SiteNow
		if !isData || json.Unmarshal([]byte(data), &now) != nil {
			continue
		}

		for _, a := range now.Assets {
			if !a.ChargeNowUntil.IsZero() {
				t.Errorf("after its credential was revoked: %s", data)
			}
		}
	}

	if err := s.lines.Err(); err != nil {
		t.Errorf("the stream goes on: %v", err)
	}
}

// A site is followed so often and no more; who leaves makes room.
func TestLive_Limits(t *testing.T) {
	h := settleIn(t)
	site, err := flex.ParseID[struct{}](h.place()["SITE"])
	if err != nil {
		t.Fatal(err)
	}

	service := h.server.Control
	var leave func()
	for range control.FollowersOfSiteMax {
		_, leave, err = service.Follow(t.Context(), h.org.ID, flex.SiteID(site))
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}

	if _, _, err := service.Follow(t.Context(), h.org.ID, flex.SiteID(site)); flex.KindOf(err) != flex.TooMany {
		t.Errorf("one too many: %v", err)
	}
	if s := h.follow(h.place()["SITE"], "Bearer "+h.token); s.answer.StatusCode != 200 {
		t.Errorf("another site: %d", s.answer.StatusCode)
	}

	leave()
	if _, again, err := service.Follow(t.Context(), h.org.ID, flex.SiteID(site)); err != nil {
		t.Errorf("once one has left: %v", err)
	} else {
		again()
	}
}

// The Go client follows a site over the end of a stream, and gives back what its function says.
func TestLive_Client(t *testing.T) {
	h := settleIn(t)
	there := h.place()
	id, err := flex.ParseID[struct{}](there["SITE"])
	if err != nil {
		t.Fatal(err)
	}

	follower := client.New(h.url, "acme", h.password)
	enough := errors.New("enough")
	states := 0
	err = follower.FollowSite(t.Context(), client.SiteID(flex.SiteID(id)), func(client.SiteNow) error {
		states++
		if states == 2 {
			return enough
		}

		h.want("POST", "/entities/asset/"+there["ASSET"]+"/event/charge-now", `{"end_at":"`+there["SOON"]+`"}`, 200, "")
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("%d states, %v", states, err)
	}

	unknown, _ := flex.ParseID[struct{}](nobodys)
	if err := follower.FollowSite(t.Context(), client.SiteID(flex.SiteID(unknown)), nil); flex.KindOf(err) == flex.NotFound || err == nil {
		t.Errorf("nobody's site: %v", err)
	}
}

// TestLive_Head asks for the headers of a stream more often than a site has followers. Each is answered at once: otherwise the
// next request of the same connection waits for the end of the stream.
func TestLive_Head(t *testing.T) {
	h := onSQLite(t)
	at := "/entities/site/" + h.newSite(halfHourly, "SW1A 2AA", "") + "/live"

	// ends streams that should not have begun, or the server would not close
	done := make(chan struct{})
	h.server.Done = done
	defer close(done)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	for i := range control.FollowersOfSiteMax + 1 {
		req, err := http.NewRequestWithContext(ctx, "HEAD", h.url+at, nil)
		if err != nil {
			t.Fatal(err)
		}

		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Authorization", "Bearer "+h.token)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		res.Body.Close()

		kind := res.Header.Get("Content-Type")
		if res.StatusCode != 200 || kind != "text/event-stream" {
			t.Errorf("request %d: %d, %q", i, res.StatusCode, kind)
		}
	}

	h.want("HEAD", "/entities/site/"+nobodys+"/live", "", 404, "", "Accept: text/event-stream")
}
