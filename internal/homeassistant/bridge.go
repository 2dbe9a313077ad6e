package homeassistant

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"

	"flexd/client"
)

// Settings are what a bridge is made of.
type Settings struct {
	Client *client.Client  // of the flexd that plans, as one organisation
	Sites  []client.SiteID // that are shown; no other is

	Broker             string // mqtt://host:1883 or mqtts://host:8883
	Username, Password string // at the broker; none if empty
	TLS                *tls.Config

	Topic     string        // what every topic of flexd's begins with
	Discovery string        // where Home Assistant looks for entities
	Every     time.Duration // how often states are sent
	ChargeFor time.Duration // how long a press of charge now charges for

	Now func() time.Time
	Log *slog.Logger
}

// The times within which the broker is tried again and must answer.
const (
	firstRetry    = 10 * time.Second // while it was never reached
	reconnectMost = 2 * time.Minute
	answerTime    = 30 * time.Second
)

// retained messages are shown to who subscribes later; at least once is enough for states.
const (
	retained   = true
	atLeastOne = byte(1)
)

// What is said of the bridge at its topic of status, and of sites and assets at theirs.
const (
	online  = "online"
	offline = "offline"
)

// Bridge joins a flexd to a broker.
type Bridge struct {
	Settings
	broker mqtt.Client
	shown  atomic.Pointer[shown] // buttons are pressed while it changes
	left   atomic.Bool           // it is offline because it ends
}

// shown is what has entities.
type shown struct {
	sites  []client.SiteID
	assets map[string]client.AssetResponse // by id
}

// has reports whether a site or an asset of the id has entities.
func (s *shown) has(id string) bool {
	_, isAsset := s.assets[id]
	return isAsset ||
		slices.ContainsFunc(s.sites, func(site client.SiteID) bool {
			return site.String() == id
		})
}

// New returns a bridge that Run starts.
func New(s Settings) *Bridge { return &Bridge{Settings: s} }

// adds reports whether there is something that was not there before.
func (s *shown) adds(before *shown) bool {
	for id := range s.assets {
		if !before.has(id) {
			return true
		}
	}

	return slices.ContainsFunc(s.sites, func(site client.SiteID) bool {
		return !before.has(site.String())
	})
}

// Run shows the sites until the context ends; then they are shown as unavailable. It fails
// when flexd does not answer for one of the sites at the start, or has none of them; later failures are logged, and
// a broker that is away is tried again, every two minutes at least. Assets that come are shown,
// and those that go, with their site or alone, are taken out of Home Assistant.
func (b *Bridge) Run(ctx context.Context) error {
	there, err := b.learn(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	b.shown.Store(there)

	connected := make(chan struct{}, 1)
	b.broker = mqtt.NewClient(b.options(ctx, connected))

	b.broker.Connect() // continues trying by itself
	defer b.leave()

	tick := time.NewTicker(b.Every)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-connected:
			b.announce()
		case <-tick.C:
			if b.broker.IsConnectionOpen() {
				b.follow(ctx)
			}
		}

		if b.broker.IsConnectionOpen() {
			b.show(ctx)
		}
	}
}

// learn asks flexd for the sites and their assets. A site that is not there is left out; at the start one must be there, and
// flexd must answer for all. Later a site that flexd does not answer for stays as it is.
func (b *Bridge) learn(ctx context.Context) (*shown, error) {
	there := &shown{assets: map[string]client.AssetResponse{}}
	before := b.shown.Load()
	var missing []error

	for _, id := range b.Sites {
		err := b.learnSite(ctx, id, there)
		switch {
		case err == nil:
		case client.StatusOf(err) == http.StatusNotFound:
			missing = append(missing, err)

		case before == nil:
			return nil, err

		default:
			b.Log.Warn("a site and its assets stay as they were", "err", err)
			there.keep(before, id)
		}
	}

	if before != nil {
		return there, nil
	}

	if len(there.sites) == 0 {
		return nil, errors.Join(missing...)
	}

	for _, err := range missing {
		b.Log.Warn("a site is not there, and is not shown", "err", err)
	}

	return there, nil
}

// keep takes over what had entities of a site.
func (s *shown) keep(before *shown, site client.SiteID) {
	if !before.has(site.String()) {
		return
	}

	s.sites = append(s.sites, site)
	for id, a := range before.assets {
		if a.SiteID == site {
			s.assets[id] = a
		}
	}
}

// learnSite adds a site and its assets; none of them if it fails.
func (b *Bridge) learnSite(
	ctx context.Context,
	id client.SiteID,
	there *shown,
) error {
	site, err := b.Client.Site(ctx, id)
	if err != nil {
		return fmt.Errorf("site %s: %w", id, err)
	}

	assets := map[string]client.AssetResponse{}
	for _, asset := range site.AssetIDs {
		a, err := b.learnAsset(ctx, asset)
		if client.StatusOf(err) == http.StatusNotFound {
			continue // it went meanwhile
		}
		if err != nil {
			return fmt.Errorf("asset %s: %w", asset, err)
		}

		assets[asset.String()] = a
	}

	there.sites = append(there.sites, id)
	maps.Copy(there.assets, assets)

	return nil
}

// learnAsset asks flexd for an asset that is not known yet.
func (b *Bridge) learnAsset(
	ctx context.Context,
	id client.AssetID,
) (client.AssetResponse, error) {
	if before := b.shown.Load(); before != nil {
		if a, known := before.assets[id.String()]; known {
			return a, nil
		}
	}

	return b.Client.Asset(ctx, id)
}

// follow shows what has come, and takes away what has gone. What flexd does not answer for stays
// as it is.
func (b *Bridge) follow(ctx context.Context) {
	there, err := b.learn(ctx)
	if err != nil {
		b.Log.Warn("sites and assets are not known anew", "err", err)
		return
	}

	before := b.shown.Swap(there)
	for _, id := range before.sites {
		if !there.has(id.String()) {
			b.withdraw("site", id.String())
		}
	}
	for id := range before.assets {
		if !there.has(id) {
			b.withdraw("asset", id)
		}
	}

	if there.adds(before) {
		b.announce()
	}
}

func (b *Bridge) options(
	ctx context.Context,
	connected chan struct{},
) *mqtt.ClientOptions {
	o := mqtt.NewClientOptions().AddBroker(b.Broker).SetClientID(b.Topic + "-bridge")
	o.SetUsername(b.Username).SetPassword(b.Password)

	if b.TLS != nil {
		o.SetTLSConfig(b.TLS)
	}

	o.SetConnectRetry(
		true,
	).SetConnectRetryInterval(firstRetry).SetMaxReconnectInterval(reconnectMost)

	o.SetWill(b.statusTopic(), offline, atLeastOne, retained)
	o.SetOrderMatters(false)

	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) {
		b.Log.Warn("the broker is away", "err", err)
	})

	o.SetConnectionNotificationHandler(
		func(_ mqtt.Client, n mqtt.ConnectionNotification) {
			if f, failed := n.(mqtt.ConnectionNotificationFailed); failed {
				b.Log.Warn(
					"the broker cannot be reached, or does not let flexd in",
					"err",
					f.Reason,
				)
			}
		},
	)

	o.SetOnConnectHandler(func(c mqtt.Client) {
		b.subscribe(ctx, c)

		select {
		case connected <- struct{}{}:
		default: // it is to be announced already
		}
	})

	return o
}

// subscribe asks for the presses of buttons, for the entities that the broker kept, and for
// what is said of the bridge itself.
func (b *Bridge) subscribe(ctx context.Context, c mqtt.Client) {
	for _, press := range buttons {
		of := func(_ mqtt.Client, m mqtt.Message) { b.pressed(ctx, press, m) }
		b.wait(
			"subscribe",
			c.Subscribe(b.Topic+"/asset/+/"+press.field, atLeastOne, of),
		)
	}

	kept := func(_ mqtt.Client, m mqtt.Message) { b.tidy(m) }
	b.wait(
		"subscribe",
		c.Subscribe(b.Discovery+"/+/+/+/config", atLeastOne, kept),
	)

	status := func(_ mqtt.Client, m mqtt.Message) { b.contradict(m) }
	b.wait("subscribe", c.Subscribe(b.statusTopic(), atLeastOne, status))
}

// contradict says that the bridge is online when somebody says that it is not. A broker may
// notice the end of a connection only after the next one was made, and it publishes the last
// will of the old one then. Without an answer everything would stay unavailable.
// What the broker kept from before is answered by announce.
func (b *Bridge) contradict(m mqtt.Message) {
	gone := string(m.Payload()) == offline
	if gone && !m.Retained() && !b.left.Load() {
		b.send(b.statusTopic(), online)
	}
}

// leave shows everything as unavailable and ends the connection.
func (b *Bridge) leave() {
	const quiesce = 250 // milliseconds for what is under way
	b.left.Store(true)
	if b.broker.IsConnectionOpen() {
		b.send(b.statusTopic(), offline)
	}
	b.broker.Disconnect(quiesce)
}

func (b *Bridge) statusTopic() string { return b.Topic + "/status" }

// send publishes a retained message: a text as it is, all else as JSON. Without a connection it is left out, as each would wait in
// vain: all of it is sent again after the next.
func (b *Bridge) send(topic string, body any) {
	if !b.broker.IsConnectionOpen() {
		return
	}

	text, isText := body.(string)
	if !isText {
		j, err := json.Marshal(body)
		if err != nil {
			b.Log.Error(
				"a message cannot be written",
				"topic",
				topic,
				"err",
				err,
			)

			return
		}
		text = string(j)
	}

	b.wait(topic, b.broker.Publish(topic, atLeastOne, retained, text))
}

// wait notes what the broker did not take in time.
func (b *Bridge) wait(what string, t mqtt.Token) {
	err := errors.New("the broker does not answer")
	if t.WaitTimeout(answerTime) {
		err = t.Error()
	}

	if err != nil {
		b.Log.Warn("the broker took no message", "of", what, "err", err)
	}
}

// pressed does what a button is for. One of an asset that is not shown, or that has no buttons, is none.
func (b *Bridge) pressed(ctx context.Context, press button, m mqtt.Message) {
	id := strings.TrimSuffix(
		strings.TrimPrefix(m.Topic(), b.Topic+"/asset/"),
		"/"+press.field,
	)

	a, known := b.shown.Load().assets[id]
	if !known || !hasButtons(a.Type) || m.Retained() {
		b.Log.Warn(
			"a button was pressed that is none",
			"topic",
			m.Topic(),
			"retained",
			m.Retained(),
		)

		return
	}

	if err := press.do(ctx, b, a.ID); err != nil {
		b.Log.Error(
			"what a button is for was not done",
			"button",
			press.field,
			"asset",
			id,
			"err",
			err,
		)
	}
}

// tidy takes away an entity that the broker kept of a site or an asset which is not shown any
// more: it may have gone while no bridge ran.
func (b *Bridge) tidy(m mqtt.Message) {
	parts := strings.Split(m.Topic(), "/")
	id, own := strings.CutPrefix(parts[len(parts)-3], b.Topic+"_")
	_, err := uuid.Parse(id)
	if !own || err != nil {
		return
	}

	if len(m.Payload()) > 0 && !b.shown.Load().has(id) {
		b.send(m.Topic(), "")
	}
}
