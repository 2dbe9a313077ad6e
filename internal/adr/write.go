package adr

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// writing is an object that is being stored.
type writing struct {
	*Service
	Object
	tx       *store.Tx
	client   Client
	previous *flex.ADRObject // nil for a new one
}

// save sets the fields that the store searches by, checks the object against the others, and
// stores it.
func (w *writing) save(ctx context.Context) error {
	if w.previous != nil {
		w.ID, w.CreatedAt = w.previous.ID, w.previous.CreatedAt
		w.Client = w.previous.Client
	}

	w.Targets = stringList(w.Fields["targets"])
	fill := map[flex.ADRKind]func(context.Context) error{
		flex.ADRProgram:      w.program,
		flex.ADREvent:        w.event,
		flex.ADRReport:       w.report,
		flex.ADRSubscription: w.subscription,
		flex.ADRVEN:          w.ven,
		flex.ADRResource:     w.resource,
	}

	if err := fill[w.Kind](ctx); err != nil {
		return err
	}

	document, err := json.Marshal(w.Fields)
	if err != nil {
		return err
	}

	w.ADRObject.Document = string(document)
	if w.previous != nil {
		return w.tx.SetADRObject(ctx, &w.ADRObject)
	}
	if err := w.checkRoom(ctx); err != nil {
		return err
	}

	return w.tx.AddADRObject(ctx, &w.ADRObject)
}

// checkRoom fails with Conflict if the organisation has as many objects of the kind as it may.
func (w *writing) checkRoom(ctx context.Context) error {
	most := ObjectsMax
	if w.Kind == flex.ADRSubscription {
		most = SubscriptionsMax
	}

	n, err := w.tx.CountADRObjects(ctx, flex.ADRSearch{Kind: w.Kind})
	if err == nil && n >= most {
		err = flex.Fail(
			flex.Conflict,
			"there are %d objects of the kind %s: an organisation has at most %d",
			n,
			w.Kind,
			most,
		)
	}

	// No VEN can have more than all have.
	if err != nil || w.client.Business || n < most/VENShare {
		return err
	}

	return w.checkShare(ctx, most/VENShare)
}

// checkShare fails with Conflict if a VEN has as many objects of the kind as one may, so that
// others can have some.
func (w *writing) checkShare(ctx context.Context, most int) error {
	n, err := w.tx.CountADRObjects(ctx, flex.ADRSearch{
		Kind:   w.Kind,
		Client: w.client.ID,
	})
	if err == nil && n >= most {
		err = flex.Fail(
			flex.Conflict,
			"this client has %d objects of the kind %s: a VEN has at most %d",
			n,
			w.Kind,
			most,
		)
	}

	return err
}

// stringList reads a list of strings from a checked document.
func stringList(v any) []string {
	items, _ := v.([]any)

	var found []string
	for _, item := range items {
		found = append(found, item.(string))
	}

	return found
}

// referenced returns the object that the document names in a field, if the client may read it. One
// that does not exist is Malformed.
func (w *writing) referenced(
	ctx context.Context,
	field string,
	kind flex.ADRKind,
) (flex.ADRObject, error) {
	reference := w.Fields[field].(string)
	missing := flex.Fail(
		flex.Malformed,
		"body.%s: there is no %s of this id",
		field,
		strings.ToLower(string(kind)),
	)

	id, err := ParseID(reference)
	if err != nil {
		return flex.ADRObject{}, missing
	}

	o, err := w.tx.ADRObject(
		ctx,
		w.client.scope(flex.ADRSearch{Kind: kind, ID: id}),
	)
	if flex.KindOf(err) == flex.NotFound {
		err = missing
	}

	return o, err
}

// free fails with Conflict if another object is found.
func (w *writing) free(
	ctx context.Context,
	plural string,
	q flex.ADRSearch,
) error {
	q.Kind = w.Kind
	found, err := w.tx.ADRObjects(ctx, q)
	if err != nil {
		return err
	}

	for i := range found {
		if found[i].ID != w.ID {
			return flex.Fail(flex.Conflict, "another has %s", plural)
		}
	}

	return nil
}

func (w *writing) program(ctx context.Context) error {
	w.Name = w.Fields["programName"].(string)
	return w.free(ctx, "this programName", flex.ADRSearch{Name: w.Name})
}

func (w *writing) event(ctx context.Context) error {
	program, err := w.referenced(ctx, "programID", flex.ADRProgram)
	if err != nil {
		return err
	}

	w.Program = program.ID
	e, err := readEvent(w.Fields)
	w.EndsAt = e.end(w.tx.Now())

	return err
}

// readEvent reads the members of a checked event that are used here.
func readEvent(fields map[string]any) (eventDocument, error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return eventDocument{}, err
	}

	var e eventDocument
	err = json.Unmarshal(b, &e)

	return e, err
}

func (w *writing) report(ctx context.Context) error {
	event, err := w.referenced(ctx, "eventID", flex.ADREvent)
	if err != nil {
		return err
	}

	w.Client, w.ClientName = w.client.ID, w.Fields["clientName"].(string)
	w.Event, w.Program = event.ID, event.Program

	return nil
}

func (w *writing) subscription(ctx context.Context) error {
	if w.previous == nil {
		w.Client = w.client.ID
	}

	w.ClientName = w.Fields["clientName"].(string)
	if w.Fields["programID"] != nil {
		program, err := w.referenced(ctx, "programID", flex.ADRProgram)
		if err != nil {
			return err
		}
		w.Program = program.ID
	}

	if err := w.webhooks(ctx); err != nil || w.previous == nil {
		return err
	}

	return w.moveNotices(ctx)
}

// moveNotices redirects the notices that wait for an address which the subscription no longer
// has to the address in its place, with that one's bearer token. Without one they are given
// up.
func (w *writing) moveNotices(ctx context.Context) error {
	var before subscriptionDocument
	if err := json.Unmarshal([]byte(w.previous.Document), &before); err != nil {
		return err
	}

	var now []string
	for _, item := range w.Fields["objectOperations"].([]any) {
		now = append(now, item.(map[string]any)["callbackUrl"].(string))
	}

	for i, one := range before.Operations {
		if slices.Contains(now, one.URL) {
			continue
		}

		to := ""
		if i < len(now) {
			to = now[i]
		}
		if err := w.tx.MoveADRNotices(ctx, w.ID, one.URL, to); err != nil {
			return err
		}
	}

	return nil
}

// bearerMax is the longest bearer token of a webhook, in bytes.
const bearerMax = 4096

// webhooks takes the bearer tokens out of a subscription's document, and checks that the
// addresses may be called. A token that is missing stays as it was; null removes it.
func (w *writing) webhooks(ctx context.Context) error {
	before := map[string]flex.Secret{}
	if w.previous != nil {
		var err error
		before, err = w.tx.ADRTokens(ctx, w.ID)
		if err != nil {
			return err
		}
	}

	w.Tokens = map[string]flex.Secret{}
	for _, item := range w.Fields["objectOperations"].([]any) {
		one := item.(map[string]any)
		to := one["callbackUrl"].(string)
		if err := w.checkCallback(to); err != nil {
			return err
		}

		token, hasToken := one["bearerToken"]
		delete(one, "bearerToken")
		if text, isText := token.(string); isText {
			if err := checkBearer(text); err != nil {
				return err
			}
			w.Tokens[to] = flex.Secret(text)
		} else if previous, known := before[to]; known && !hasToken {
			w.Tokens[to] = previous
		}

		for _, o := range stringList(one["objects"]) {
			if !slices.Contains(w.Objects, o) {
				w.Objects = append(w.Objects, o)
			}
		}
	}

	return nil
}

func checkBearer(token string) error {
	strange := strings.ContainsFunc(token, func(r rune) bool {
		return r <= ' ' || r > '~'
	})
	if strange || len(token) > bearerMax || token == "" {
		return flex.Fail(
			flex.Malformed,
			"body.objectOperations.bearerToken: a token has 1 to %d printable ASCII characters, and no blank",
			bearerMax,
		)
	}

	return nil
}

// checkCallback checks that a webhook's address may be called. The addresses of its host name
// are checked at each call.
func (s *Service) checkCallback(to string) error {
	const at = "body.objectOperations.callbackUrl: "
	u, err := url.Parse(to)
	isPlain := err == nil && s.PlainHTTP && u.Scheme == "http"
	if err != nil || u.Hostname() == "" || u.User != nil {
		return flex.Fail(
			flex.Malformed,
			at+"it is no URL such as https://example.com/openadr",
		)
	}

	if u.Scheme != "https" && !isPlain {
		return flex.Fail(
			flex.Malformed,
			at+
				"it must begin with https://; http:// is for private networks, where the operator allows it",
		)
	}

	if s.Out == nil {
		return nil
	}

	err = cmp.Or(egress.CheckPort(u.Port()), s.Out.CheckHost(u.Hostname()))
	if err != nil {
		return flex.Fail(flex.Malformed, at+"%v", err)
	}

	return nil
}

func (w *writing) ven(ctx context.Context) error {
	w.Name = w.Fields["venName"].(string)
	w.owner()
	err := w.free(ctx, "this venName", flex.ADRSearch{Name: w.Name})
	if err != nil {
		return err
	}

	err = w.free(
		ctx,
		"this clientID: a client is one VEN",
		flex.ADRSearch{Client: w.Client},
	)
	if err != nil || w.previous == nil || w.previous.Client == w.Client {
		return err
	}

	return w.moveResources(ctx)
}

// moveResources gives the resources of a VEN its new client: otherwise the former client could
// still read events by their targets, and the new one could not write them. Subscribers get no
// more notices of them together than of any change, and find the rest when they read.
func (w *writing) moveResources(ctx context.Context) error {
	found, err := w.tx.ADRObjects(ctx, flex.ADRSearch{
		Kind: flex.ADRResource,
		VEN:  w.ID,
	})
	if err != nil {
		return err
	}

	bytesLeft := NoticesMax
	for i := range found {
		o, err := objectOf(&found[i])
		if err != nil {
			return err
		}

		o.Client = w.Client
		if err := w.tx.SetADRObject(ctx, &o.ADRObject); err != nil {
			return err
		}
		if bytesLeft < 0 {
			continue
		}

		err = w.notifyWithin(ctx, w.tx, &o, opUpdate, &bytesLeft)
		if err != nil && flex.KindOf(err) != flex.TooLarge {
			return err
		}
	}

	return nil
}

func (w *writing) resource(ctx context.Context) error {
	w.Name = w.Fields["resourceName"].(string)
	w.owner()
	ven, err := w.referenced(ctx, "venID", flex.ADRVEN)
	if err != nil {
		return err
	}
	if ven.Client != w.Client {
		return flex.Fail(
			flex.Malformed,
			"body.clientID: the VEN is another client's",
		)
	}

	w.VEN = ven.ID

	return w.free(ctx, "this resourceName", flex.ADRSearch{
		VEN:  w.VEN,
		Name: w.Name,
	})
}

// owner sets the client of a VEN or resource, and its targets: as the business client sets
// them, else as before.
func (w *writing) owner() {
	if w.client.Business {
		w.Client = w.Fields["clientID"].(string)
		return
	}

	w.Client = w.client.ID
	if w.previous != nil && len(w.previous.Targets) > 0 {
		w.Targets = w.previous.Targets
		stored := make([]any, len(w.Targets))
		for i, target := range w.Targets {
			stored[i] = target
		}
		w.Fields["targets"] = stored
	}
}
