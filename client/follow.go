package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// followRetry is the wait before a stream that has ended is asked for again, unless the service asks for a longer one.
	followRetry = 2 * time.Second
	// followSilence is how long a stream may be silent; flexd sends a sign of life every 15 seconds.
	followSilence = 45 * time.Second
	// eventMax bounds the line of one event, in bytes.
	eventMax = 8 << 20
)

// SiteLive says how a site's assets are now.
func (c *Client) SiteLive(ctx context.Context, id SiteID) (SiteNow, error) {
	return call[SiteNow](ctx, c, get, sitePath(id, "/live"), nil, nil)
}

// FollowSite calls changed with how a site's assets are, at once and each time that something of it
// changes, until the context ends, changed fails or flexd refuses: then it returns that error. A stream
// that ends or breaks is asked for again, and begins with how things are.
func (c *Client) FollowSite(
	ctx context.Context,
	id SiteID,
	changed func(SiteNow) error,
) error {
	renewed := false
	for {
		stop, err := c.followOnce(ctx, id, changed)
		if stop {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}

		if mayRenew(err) && !renewed {
			renewed = true
			continue
		}

		if StatusOf(err) != 0 && !passing(err) {
			return err
		}

		renewed = renewed && err != nil
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(pauseOf(err), followRetry)):
		}
	}
}

// followOnce reads one stream to its end. It reports whether the caller wants no other.
func (c *Client) followOnce(
	ctx context.Context,
	id SiteID,
	changed func(SiteNow) error,
) (stop bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// A stream has no time limit, so that one which is never answered is silent too.
	silence := time.AfterFunc(followSilence, cancel)
	defer silence.Stop()

	events, err := c.openEvents(ctx, sitePath(id, "/live"))
	if err != nil {
		return false, err
	}

	defer events.Close()
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, eventMax)

	for lines.Scan() {
		silence.Reset(followSilence)
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData {
			continue
		}

		var now SiteNow
		if err := json.Unmarshal([]byte(data), &now); err != nil {
			return true, fmt.Errorf(
				"follow site %s: read an event: %w",
				id,
				err,
			)
		}
		if err := changed(now); err != nil {
			return true, err
		}
	}

	return false, nil
}

// openEvents asks for a stream of server-sent events. The caller closes it.
func (c *Client) openEvents(
	ctx context.Context,
	path string,
) (io.ReadCloser, error) {
	req, err := c.prepare(ctx, request{method: get, path: path}, "")
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")

	endless := *c.HTTP // a stream outlives the time limit of a request
	endless.Timeout = 0
	resp, err := endless.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}

	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		c.forgetToken(req)
	}

	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err != nil {
		return nil, err
	}

	return nil, failure(resp, body)
}
