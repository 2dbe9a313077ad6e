package adr

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// CallbackRoot is the path below which other parties' servers call, each with the id of
	// its program here.
	CallbackRoot = "/openadr3/callback/"

	// subscriptionCheck is how often a subscription is looked for that should be there.
	subscriptionCheck = time.Hour
	// unsubscribeTime is how long a server that is removed has to forget the subscription.
	unsubscribeTime = 10 * time.Second
)

// register registers the VEN with the server, and the fleet as its one resource.
func (r *remote) register(ctx context.Context) error {
	if !r.upstream.KnownAt.IsZero() {
		return nil
	}

	ven, err := r.findOrMake(ctx, "/vens", url.Values{
		"venName": {r.upstream.Name},
	}, map[string]any{
		"objectType": "VEN_VEN_REQUEST",
		"venName":    r.upstream.Name,
	})
	if err != nil {
		return err
	}

	_, err = r.findOrMake(ctx, "/resources", url.Values{
		"venID":        {ven},
		"resourceName": {r.upstream.Name},
	}, map[string]any{
		"objectType":   "VEN_RESOURCE_REQUEST",
		"venID":        ven,
		"resourceName": r.upstream.Name,
	})
	if err == nil {
		r.upstream.KnownAt = r.DB.Now()
	}

	return err
}

// findOrMake returns the id of the object that a search finds, or of the one that is made.
func (r *remote) findOrMake(
	ctx context.Context,
	path string,
	search url.Values,
	document map[string]any,
) (string, error) {
	var found []struct {
		ID string `json:"id"`
	}

	_, err := r.do(ctx, "GET", path+"?"+search.Encode(), nil, &found, 200)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0].ID, nil
	}

	return r.make(ctx, path, document)
}

// make makes an object and returns its id.
func (r *remote) make(
	ctx context.Context,
	path string,
	document map[string]any,
) (string, error) {
	var created struct {
		ID string `json:"id"`
	}

	_, err := r.do(ctx, "POST", path, document, &created, 200, 201)
	if err != nil {
		return "", err
	}

	if _, err := id.normalise("id", created.ID); err != nil {
		return "", flex.Fail(
			flex.Unavailable,
			"POST %s: what was made has no id: %v",
			path,
			err,
		)
	}

	return created.ID, nil
}

// subscribe subscribes to the events of the program, if the server can reach this flexd.
func (r *remote) subscribe(ctx context.Context) error {
	u, now := r.upstream, r.DB.Now()
	checkedRecently := now.Before(u.SubscribedAt.Add(subscriptionCheck))
	if u.Callback == "" || checkedRecently {
		return nil
	}

	status, err := 404, error(nil)
	if u.Subscription != "" {
		status, err = r.do(ctx, "GET", subscriptionPath(u), nil, nil, 200, 404)
	}

	if err == nil && status == 404 {
		u.Subscription, err = r.make(ctx, "/subscriptions", subscriptionTo(u))
	}
	if err == nil {
		u.SubscribedAt = now
	}

	return err
}

func subscriptionPath(u *store.ADRUpstream) string {
	return "/subscriptions/" + url.PathEscape(u.Subscription)
}

// subscriptionTo returns the subscription to the events of a program.
func subscriptionTo(u *store.ADRUpstream) map[string]any {
	to := strings.TrimSuffix(u.Callback, "/") + CallbackRoot + u.Program.String()

	return map[string]any{
		"clientName": u.Name,
		"programID":  u.Remote,
		"objectOperations": []any{map[string]any{
			"objects":     []string{string(flex.ADREvent)},
			"operations":  []string{opCreate, opUpdate, opDelete},
			"callbackUrl": to,
			"bearerToken": callbackToken(u),
		}},
	}
}

// callbackToken returns the token with which a server calls. Only a party with the client's
// secret can compute it.
func callbackToken(u *store.ADRUpstream) string {
	mac := hmac.New(sha256.New, []byte(u.Secret.Reveal()))
	mac.Write([]byte("callback "))
	mac.Write(u.Program.Bytes())

	return hex.EncodeToString(mac.Sum(nil))
}

// HandleCallback makes a server be polled at once, because it called. The content of the call is not
// used: a call may be late, repeated or lost, and the server's answer to a poll is not.
// Another's token, or a program without a server, is Unauthorized.
func (s *Service) HandleCallback(
	ctx context.Context,
	program flex.ADRObjectID,
	token flex.Secret,
) error {
	var right bool
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		u, known, err := all.ADRUpstream(ctx, program)
		if err == nil && known && u.Callback != "" {
			right = hmac.Equal([]byte(callbackToken(&u)), []byte(token.Reveal()))
		}
		return err
	})
	if err != nil {
		return err
	}

	if !right {
		return flex.Fail(flex.Unauthorized, "the token is not that of a server which may call here")
	}

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.ADRUpstreamCalled(ctx, program)
	})
}

// unsubscribe ends the subscription at a server that is removed. If the server does not
// answer, its calls will be refused.
func (s *Service) unsubscribe(ctx context.Context, u *store.ADRUpstream) {
	if u.Subscription == "" || s.Out == nil {
		return
	}

	timeoutCtx, cancel := context.WithTimeout(ctx, unsubscribeTime)
	defer cancel()

	r := remote{Service: s, upstream: u}
	_, _ = r.do(timeoutCtx, "DELETE", subscriptionPath(u), nil, nil, 200, 404) // either way it is asked no more
}
