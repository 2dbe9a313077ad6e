// Package homeassistant shows sites to Home Assistant by MQTT: entities that it discovers by
// itself, their states, and a button. It is a client of the interface like any other, and
// reaches the sites that it is given alone.
package homeassistant

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

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
	ChargeFor time.Duration // how long the button charges for

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

// Bridge joins a flexd to a broker.
type Bridge struct {
	Settings
	broker mqtt.Client
	assets map[string]client.AssetResponse // of the sites shown, by id
}

// New returns a bridge that Run starts.
func New(s Settings) *Bridge { return &Bridge{Settings: s} }

// Run shows the sites until the context ends; then they are shown as unavailable. It fails
// when flexd does not answer for one of the sites at the start; later failures are logged, and
// a broker that is away is tried again, every two minutes at least.
func (b *Bridge) Run(ctx context.Context) error {
	if err := b.learn(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}

	connected := make(chan struct{}, 1)
	b.broker = mqtt.NewClient(b.options(ctx, connected))

	b.broker.Connect() // goes on trying by itself
	defer b.leave()

	tick := time.NewTicker(b.Every)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-connected:
			b.announce(ctx)
		case <-tick.C:
		}

		if b.broker.IsConnectionOpen() {
			b.show(ctx)
		}
	}
}

// learn asks flexd for the assets of the sites.
func (b *Bridge) learn(ctx context.Context) error {
	b.assets = map[string]client.AssetResponse{}
	for _, id := range b.Sites {
		site, err := b.Client.Site(ctx, id)
		if err != nil {
			return fmt.Errorf("site %s: %w", id, err)
		}

		for _, asset := range site.AssetIDs {
			a, err := b.Client.Asset(ctx, asset)
			if err != nil {
				return fmt.Errorf("asset %s: %w", asset, err)
			}
			b.assets[a.ID.String()] = a
		}
	}

	return nil
}

func (b *Bridge) options(ctx context.Context, connected chan struct{}) *mqtt.ClientOptions {
	o := mqtt.NewClientOptions().AddBroker(b.Broker).SetClientID(b.Topic + "-bridge")
	o.SetUsername(b.Username).SetPassword(b.Password)

	if b.TLS != nil {
		o.SetTLSConfig(b.TLS)
	}

	o.SetConnectRetry(true).SetConnectRetryInterval(firstRetry).SetMaxReconnectInterval(reconnectMost)
	o.SetWill(b.statusTopic(), "offline", atLeastOne, retained)
	o.SetOrderMatters(false)

	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) { b.Log.Warn("the broker is away", "err", err) })
	o.SetConnectionNotificationHandler(func(_ mqtt.Client, n mqtt.ConnectionNotification) {
		if f, failed := n.(mqtt.ConnectionNotificationFailed); failed {
			b.Log.Warn("the broker cannot be reached, or does not let flexd in", "err", f.Reason)
		}
	})
	o.SetOnConnectHandler(func(c mqtt.Client) {
		b.wait("subscribe", c.Subscribe(b.Topic+"/asset/+/charge_now", atLeastOne, func(_ mqtt.Client, m mqtt.Message) { b.pressed(ctx, m) }))

		select {
		case connected <- struct{}{}:
		default: // it is to be announced already
		}
	})

	return o
}

// leave shows everything as unavailable and ends the connection.
func (b *Bridge) leave() {
	const quiesce = 250 // milliseconds for what is under way
	if b.broker.IsConnectionOpen() {
		b.send(b.statusTopic(), "offline")
	}
	b.broker.Disconnect(quiesce)
}

func (b *Bridge) statusTopic() string { return b.Topic + "/status" }

// send publishes a retained message: a text as it is, all else as JSON.
func (b *Bridge) send(topic string, body any) {
	text, isText := body.(string)
	if !isText {
		j, err := json.Marshal(body)
		if err != nil {
			b.Log.Error("a message cannot be written", "topic", topic, "err", err)
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

// pressed asks flexd to charge at once. A button of an asset that is not shown is none.
func (b *Bridge) pressed(ctx context.Context, m mqtt.Message) {
	id := strings.TrimSuffix(strings.TrimPrefix(m.Topic(), b.Topic+"/asset/"), "/charge_now")
	a, shown := b.assets[id]
	if !shown || m.Retained() {
		b.Log.Warn("a button was pressed that is none", "topic", m.Topic(), "retained", m.Retained())
		return
	}

	err := b.Client.ChargeNow(ctx, a.ID, client.ChargeNowEventRequest{EndAt: client.At(b.Now().Add(b.ChargeFor))})
	if err != nil {
		b.Log.Error("charge-now was not taken", "asset", id, "err", err)
	}
}
