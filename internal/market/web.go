package market

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"flexd/internal/egress"
)

// The bounds of asking a market's service.
const (
	AskTime       = 30 * time.Second // for one exchange
	MaxAnswer     = 16 << 20         // bytes
	Retries       = 4                // after a first try that failed
	FirstWait     = time.Second      // before the first retry; it doubles
	MaxWait       = time.Minute      // however long a service asks us to wait
	MaxPages      = 200              // of an answer that comes in pages
	maxRemembered = 64
)

// Web asks the markets' services, as a polite client does: it tries again, later each
// time and not in step with others, when a service is busy or in trouble; it never
// repeats what was refused; and it does not fetch again what has not changed.
type Web struct {
	Client *egress.Client

	mu    sync.Mutex
	known map[string]page
}

// page is an answer with what proves that it is still the newest.
type page struct {
	etag     string
	modified string
	body     []byte
}

// get reads the JSON answer at an address into to. It is false if the service has no
// content there yet.
func (w *Web) get(ctx context.Context, address string, to any) (bool, error) {
	body, err := w.fetch(ctx, address)
	if err != nil || len(body) == 0 {
		return false, err
	}
	if err := json.Unmarshal(body, to); err != nil {
		return false, fmt.Errorf(
			"ask %s: the answer cannot be read: %w",
			host(address),
			err,
		)
	}

	return true, nil
}

func (w *Web) fetch(ctx context.Context, address string) ([]byte, error) {
	wait := FirstWait
	for try := 0; ; try++ {
		answer, err := w.ask(ctx, address)
		e, ok := errors.AsType[*egress.Error](err)
		if ok && (e.Refused || answer.Status == 200) {
			return nil, fmt.Errorf(
				"ask %s: %w",
				host(address),
				err,
			) // a private address, or too long an answer
		}

		if err == nil {
			switch s := answer.Status; {
			case s == 200:
				w.remember(address, answer)
				return answer.Body, nil

			case s == 204:
				return nil, nil

			case s == 304:
				if p := w.recall(address); p.body != nil {
					return p.body, nil
				}

				// it was forgotten meanwhile: the next try asks for all of it
				err = errors.New("status 304 of what is not remembered")

			case s != 429 && s < 500:
				return nil, fmt.Errorf(
					"ask %s: status %d: %s",
					host(address),
					s,
					excerpt(answer.Body),
				)

			default:
				err = fmt.Errorf("status %d: %s", s, excerpt(answer.Body))
			}
		}

		if try == Retries || ctx.Err() != nil {
			return nil, fmt.Errorf(
				"ask %s, %d times: %w",
				host(address),
				try+1,
				err,
			)
		}

		err = pause(ctx, max(jitter(wait), min(retryAfter(answer), MaxWait)))
		if err != nil {
			return nil, err
		}

		wait = min(2*wait, MaxWait)
	}
}

func (w *Web) ask(ctx context.Context, address string) (egress.Answer, error) {
	header := map[string]string{"Accept": "application/json"}
	if p := w.recall(address); p.body != nil {
		if p.etag != "" {
			header["If-None-Match"] = p.etag
		}

		if p.modified != "" {
			header["If-Modified-Since"] = p.modified
		}
	}

	return w.Client.Do(ctx, egress.Request{
		Method:    "GET",
		URL:       address,
		Header:    header,
		AnswerMax: MaxAnswer,
		Time:      AskTime,
	})
}

func (w *Web) recall(address string) page {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[address]
}

// remember stores an answer that the service can be asked about again.
func (w *Web) remember(address string, a egress.Answer) {
	p := page{a.Header("ETag"), a.Header("Last-Modified"), a.Body}
	if p.etag == "" && p.modified == "" {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.known == nil || len(w.known) >= maxRemembered {
		w.known = map[string]page{}
	}

	w.known[address] = p
}

// retryAfter returns how long the service asks us to wait: in seconds, or until an instant.
func retryAfter(a egress.Answer) time.Duration {
	if a.Status == 0 {
		return 0
	}

	text := a.Header("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(0, min(seconds, 3600))) * time.Second
	}
	at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", text)
	if err == nil {
		return max(0, time.Until(at))
	}

	return 0
}

// jitter moves a wait by up to a fifth either way.
func jitter(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5+1)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the service"
	}

	return u.Host
}

// excerpt returns the start of an answer for an operator to read.
func excerpt(body []byte) string {
	const shown = 200
	s := strings.Join(
		strings.Fields(strings.ToValidUTF8(
			string(body[:min(len(body), shown)]),
			"",
		)),
		" ",
	)

	if len(body) > shown {
		s += "…"
	}

	return s
}

// minute is how the services write instants: in UTC, to the minute.
const minute = "2006-01-02T15:04Z"

// instant reads an instant as the services write it, with or without seconds.
func instant(s string) (time.Time, error) {
	if t, err := time.Parse(minute, s); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, s)
}
