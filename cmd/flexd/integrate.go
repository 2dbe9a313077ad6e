package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/wire"
	"flexd/sim"
)

// remote is the flags of the tools that talk to a flexd as an integrator does.
type remote struct {
	URL      string `name:"url" help:"Base URL of the flexd." default:"http://127.0.0.1:8080" env:"FLEXD_URL"`
	Username string `help:"Username of the organisation." required:"" env:"FLEXD_USERNAME" placeholder:"U"`
	Password string `help:"Password of the organisation." required:"" env:"FLEXD_PASSWORD" placeholder:"P"`
}

// open returns a client that has reached flexd and logged in.
func (r remote) open(ctx context.Context) (*client.Client, error) {
	c := client.New(r.URL, r.Username, r.Password)
	retries := c.Retries
	c.Retries = 0
	_, err := c.Me(ctx)
	c.Retries = retries

	return c, r.explain(err)
}

// explain returns what to do about a failure that new users often have.
func (r remote) explain(err error) error {
	unreachable, ok := errors.AsType[*url.Error](err)
	if ok && !errors.Is(err, context.Canceled) {
		return fmt.Errorf(
			"no flexd answers at %s (%w): start one with flexd serve, or name its address with --url",
			r.URL,
			unreachable.Err,
		)
	}

	if client.StatusOf(err) == http.StatusUnauthorized {
		return fmt.Errorf(
			"%s does not know %s with this password: flexd org add makes an organisation and prints its credentials",
			r.URL,
			r.Username,
		)
	}

	return err
}

// listen is `flexd listen`.
type listen struct {
	remote
	JSON      bool          `help:"Print each push as a line of JSON." name:"json"`
	ForwardTo string        `help:"URL that each push is posted to as well, for example of a program on this machine." placeholder:"URL"`
	Secret    string        `help:"Secret that signs forwarded requests; without it nothing is signed." placeholder:"S"`
	Every     time.Duration `help:"How often to ask flexd for new pushes." default:"1s"`
	Count     int           `help:"End after so many pushes; 0 goes on until stopped." default:"0"`
}

// Run shows an organisation's pushes as they are made, on a machine that nothing can reach.
func (l *listen) Run(ctx context.Context, c console) error {
	api, err := l.open(ctx)
	if err != nil {
		return err
	}

	since, known, err := latest(ctx, api)
	if err == nil { // others were made at the same instant, and are no news either
		_, err = newPushes(ctx, api, since, known)
	}
	if err != nil {
		return err
	}

	fmt.Fprintf(
		c.err,
		"listening for the pushes of %s at %s; press Ctrl-C to stop\n",
		l.Username,
		l.URL,
	)

	for n := 0; ; {
		newest, err := newPushes(ctx, api, since, known)
		if err != nil {
			return err
		}

		for _, id := range newest {
			if err := l.show(ctx, c, api, id); err != nil {
				return err
			}
			if n++; n == l.Count {
				return nil
			}
		}

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(l.Every):
		}
	}
}

// latest returns when the organisation's newest push was made, by the service's clock. Pushes
// up to then are ignored. This machine's clock and the sandbox's may show another time.
func latest(
	ctx context.Context,
	api *client.Client,
) (time.Time, map[client.EventID]bool, error) {
	var last wire.DeliveryResponsePage
	known := map[client.EventID]bool{}

	err := api.Do(
		ctx,
		"GET",
		"/deliveries",
		url.Values{"limit": {"1"}},
		nil,
		&last,
	)

	var since time.Time
	for _, d := range last.Deliveries {
		since, known[client.EventID(d.ID)] = d.CreatedAt.Time, true
	}

	return since, known, err
}

// newPushes returns the pushes that are not in known yet, the oldest first, and adds them to
// it. There may be more than one page of them, because new prices cause a whole fleet to be
// planned at once.
func newPushes(
	ctx context.Context,
	api *client.Client,
	since time.Time,
	known map[client.EventID]bool,
) ([]client.EventID, error) {
	q := url.Values{"limit": {"100"}}
	if !since.IsZero() {
		q.Set("since", since.Add(-time.Minute).UTC().Format(time.RFC3339))
	}

	var newest []client.EventID
	for {
		var page wire.DeliveryResponsePage
		err := api.Do(ctx, "GET", "/deliveries", q, nil, &page)
		if err != nil {
			return nil, err
		}

		before := len(newest)
		for _, d := range page.Deliveries { // the newest comes first
			id := client.EventID(d.ID)
			if known[id] || d.CreatedAt.Before(since) {
				continue
			}

			known[id] = true
			newest = append(newest, id)
		}

		// behind a page without news there are none
		if page.Next.IsZero() || len(newest) == before {
			slices.Reverse(newest)
			return newest, nil
		}

		q.Set("before", page.Next.String())
	}
}

func (l *listen) show(
	ctx context.Context,
	c console,
	api *client.Client,
	id client.EventID,
) error {
	var d wire.DeliveryDetail
	if err := api.Do(
		ctx,
		"GET",
		"/deliveries/"+id.String(),
		nil,
		nil,
		&d,
	); err != nil {
		return err
	}

	var status int
	var took time.Duration
	var failed error

	if l.ForwardTo != "" {
		h, err := l.headers(&d, id)
		if err != nil {
			return err
		}

		status, took, failed = post(ctx, l.ForwardTo, h, d.Payload)
	}

	if l.JSON {
		return l.printLine(c, &d, status, failed)
	}

	kind := d.Kind
	if p, err := ocpp.Parse(d.Payload); err == nil {
		kind = sim.InWords(p)
	}

	fmt.Fprintf(
		c.out,
		"%s  asset %s  generation %d: %s\n%s\n",
		flex.Clock(d.CreatedAt.Time, flex.London, "15:04:05"),
		d.AssetID,
		d.Generation,
		kind,
		d.Payload,
	)

	switch {
	case l.ForwardTo == "":
	case failed != nil:
		fmt.Fprintf(c.out, "  forwarded: %v\n", failed)
	default:
		fmt.Fprintf(
			c.out,
			"  forwarded: %d in %v\n",
			status,
			took.Round(time.Millisecond),
		)
	}

	return nil
}

// printLine prints a push as a line of JSON, with the result of forwarding it.
func (l *listen) printLine(
	c console,
	d *wire.DeliveryDetail,
	status int,
	failed error,
) error {
	line := fields{
		"event_id":   d.ID,
		"created_at": d.CreatedAt,
		"asset_id":   d.AssetID,
		"generation": d.Generation,
		"kind":       d.Kind,
		"payload":    json.RawMessage(d.Payload),
	}

	if l.ForwardTo != "" {
		line["forwarded_status"] = status
	}

	if failed != nil {
		line["forwarded_error"] = failed.Error()
	}

	return json.NewEncoder(c.out).Encode(line)
}

// headers are those with which a push is forwarded.
func (l *listen) headers(
	d *wire.DeliveryDetail,
	id client.EventID,
) (http.Header, error) {
	if l.Secret == "" {
		return http.Header{
			"Content-Type": {"application/json"},
			"Webhook-Id":   {id.String()},
		}, nil
	}

	return client.SignWebhook(l.Secret, id.String(), clock(), d.Payload)
}

// pushes is an HTTP client like that of flexd's own pushes: it follows no redirect and waits
// no longer. It may also reach this machine and its private networks, because the tools are
// for developers.
var pushes = egress.New(egress.Options{Allow: egress.Private})

func post(
	ctx context.Context,
	to string,
	h http.Header,
	body []byte,
) (int, time.Duration, error) {
	fields := map[string]string{}
	for name := range h {
		fields[name] = h.Get(name)
	}

	began := time.Now()
	answer, err := pushes.Do(ctx, egress.Request{
		Method: http.MethodPost,
		URL:    to,
		Header: fields,
		Body:   body,
	})

	return answer.Status, time.Since(began), err
}

// trigger is `flexd trigger`.
type trigger struct {
	remote
	form
	Event   string        `arg:"" help:"plug_in, plug_out, intent_update, charge_now, charge_now_deleted or tariff_update." enum:"plug_in,plug_out,intent_update,charge_now,charge_now_deleted,tariff_update"`
	Asset   string        `arg:"" help:"External id of the asset."`
	KWh     float64       `name:"kwh" help:"Energy wanted, with plug_in and intent_update." default:"20"`
	ReadyBy string        `help:"Time of day at which the car is to be ready, with plug_in and intent_update; 07:00 if not given, or 17:00 if it is between 23:30 and 07:00, when the night's cheap hours are too few." placeholder:"HH:MM"`
	Peak    bool          `help:"Permit peak charging, with plug_in and intent_update."`
	Mode    string        `help:"minimise or maximise, with plug_in and intent_update." enum:"minimise,maximise" default:"minimise"`
	OffPeak string        `help:"Off-peak times, with plug_in and tariff_update." default:"00:00-05:30, 10:00-16:00, 23:30-24:00"`
	Zone    string        `help:"Zone of the off-peak times." default:"Europe/London"`
	For     time.Duration `help:"How long to charge now, with charge_now." default:"1h"`
}

// Run sends one event.
func (t *trigger) Run(ctx context.Context, c console) error {
	api, err := t.open(ctx)
	if err != nil {
		return err
	}

	asset, err := api.AssetByExternalID(ctx, t.Asset)
	if client.StatusOf(err) == http.StatusNotFound {
		return t.unknown(ctx, api)
	}

	if err != nil {
		return err
	}

	tariff := &client.Tariff{OffPeakTimes: t.OffPeak, Timezone: t.Zone}
	if t.Event == "tariff_update" {
		err = api.UpdateTariff(
			ctx,
			asset.ID,
			client.TariffUpdateEventRequest{Tariff: *tariff},
		)
	} else {
		var ev client.AssetEventRequest
		ev, err = t.event(ctx, api, tariff)
		if err == nil {
			err = api.Event(ctx, asset.ID, ev)
		}
	}

	if err != nil {
		return err
	}

	return t.print(
		c,
		fields{
			"event_type":  t.Event,
			"asset_id":    asset.ID,
			"external_id": t.Asset,
		},
		"%s sent for %s (%s)\n",
		t.Event,
		t.Asset,
		asset.ID,
	)
}

// unknown reports that there is no such asset, and lists existing ones.
func (t *trigger) unknown(ctx context.Context, api *client.Client) error {
	const shown = 10
	page, err := api.Assets(ctx, client.Page{Limit: shown})

	if err != nil {
		return err
	}

	if len(page.Assets) == 0 {
		return fmt.Errorf(
			"%s has no assets yet: register one first, with POST /entities/site/onboard",
			t.Username,
		)
	}

	var names []string
	for _, a := range page.Assets {
		names = append(names, a.ExternalID)
	}

	if more := page.TotalNumAssets - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}

	return fmt.Errorf(
		"%s has no asset with the external id %q; it has %s",
		t.Username,
		t.Asset,
		strings.Join(names, ", "),
	)
}

func (t *trigger) event(
	ctx context.Context,
	api *client.Client,
	tariff *client.Tariff,
) (client.AssetEventRequest, error) {
	now, err := api.Clock(ctx)
	if err != nil {
		now = clock()
	}

	wall, err := t.readyBy(now)
	if err != nil {
		return client.AssetEventRequest{}, err
	}

	var ev client.AssetEventRequest
	ev.EventType = t.Event
	switch t.Event {
	case wire.PlugIn, wire.IntentUpdate:
		local := client.WallTime(wall)
		ev.Tariff = tariff
		ev.Intent = &client.Intent{
			EnergyRequiredKWh: t.KWh,
			ReadyBy:           client.At(now),
			ReadyByLocalTime:  &local,
			MayChargePeak:     t.Peak,
			ChargingMode:      client.ChargingMode(t.Mode + "_charging_time"),
		}

	case wire.ChargeNow:
		ev.EndAt = client.At(now.Add(t.For))
	}

	return ev, nil
}

// readyBy returns the given deadline, or one that the default off-peak times can meet.
func (t *trigger) readyBy(now time.Time) (flex.WallTime, error) {
	const night, morning, evening = flex.WallTime(23*time.Hour +
		30*time.Minute), flex.WallTime(7 * time.Hour), flex.WallTime(17 * time.Hour)

	if t.ReadyBy != "" {
		at, err := flex.ParseWallTime(t.ReadyBy)
		if err != nil {
			return 0, flex.Fail(
				flex.Invalid,
				"--ready-by: %q is not a time of day such as 07:00",
				t.ReadyBy,
			)
		}
		return at, nil
	}

	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		zone = flex.London // the service says what is wrong with the zone
	}

	local := now.In(zone)
	at := flex.WallTime(time.Duration(local.Hour())*time.Hour +
		time.Duration(local.Minute())*time.Minute)

	if at < morning || at >= night {
		return evening, nil
	}

	return morning, nil
}
