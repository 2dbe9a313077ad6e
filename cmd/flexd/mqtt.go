package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/homeassistant"
)

// mqttCommand is `flexd mqtt`.
type mqttCommand struct {
	Broker       string `help:"Address of the MQTT broker: mqtt://HOST:1883, or mqtts://HOST:8883 over TLS." required:"" env:"FLEXD_MQTT_BROKER" placeholder:"URL"`
	MQTTUsername string `name:"mqtt-username" help:"The username at the broker." env:"FLEXD_MQTT_USERNAME" placeholder:"U"`
	MQTTPassword string `name:"mqtt-password" help:"The password at the broker; better in the environment." env:"FLEXD_MQTT_PASSWORD" placeholder:"P"`
	CA           string `help:"Certificates in PEM that the broker's is checked with, in place of the system's." type:"existingfile" env:"FLEXD_MQTT_CA" placeholder:"FILE"`

	Flexd    string `help:"Address of the flexd that plans; ${default} if not given." default:"http://127.0.0.1:8080" env:"FLEXD_MQTT_FLEXD" placeholder:"URL"`
	Username string `help:"The organisation's username at flexd. The role entity_read is enough to show plans; the button needs entity_write, and money rewards." required:"" env:"FLEXD_MQTT_ORG_USERNAME" placeholder:"U"`
	Password string `help:"Its password; better in the environment." required:"" env:"FLEXD_MQTT_ORG_PASSWORD" placeholder:"P"`

	Site      []string      `help:"Id of a site that is shown; may be given more than once. No other is." required:"" env:"FLEXD_MQTT_SITES" placeholder:"ID"`
	Topic     string        `help:"What flexd's topics begin with; ${default} if not given. Two bridges at one broker need two." default:"flexd" env:"FLEXD_MQTT_TOPIC" placeholder:"WORD"`
	Discovery string        `help:"Where Home Assistant looks for entities; ${default} if not given." default:"homeassistant" env:"FLEXD_MQTT_DISCOVERY" placeholder:"WORD"`
	Every     time.Duration `help:"How often states are sent; ${default} if not given, and at least 5s." default:"1m" env:"FLEXD_MQTT_EVERY" placeholder:"DURATION"`
	ChargeFor time.Duration `help:"How long the button charges for; ${default} if not given." default:"4h" env:"FLEXD_MQTT_CHARGE_FOR" placeholder:"DURATION"`
}

// Run shows sites to Home Assistant until it is stopped.
func (m *mqttCommand) Run(ctx context.Context, c console) error {
	s, err := m.settings()
	if err != nil {
		return err
	}

	fmt.Fprintf(c.out, "showing %d sites at %s\n", len(s.Sites), m.Broker)

	return remote{URL: m.Flexd, Username: m.Username}.explain(homeassistant.New(s).Run(ctx))
}

// leastEvery is the shortest time between two requests of the bridge to flexd.
const leastEvery = 5 * time.Second

func (m *mqttCommand) settings() (homeassistant.Settings, error) {
	s := homeassistant.Settings{
		Client:    client.New(m.Flexd, m.Username, m.Password),
		Broker:    m.Broker,
		Username:  m.MQTTUsername,
		Password:  m.MQTTPassword,
		Topic:     m.Topic,
		Discovery: m.Discovery,
		Every:     m.Every,
		ChargeFor: m.ChargeFor,
		Now:       time.Now,
		Log:       slog.Default(),
	}

	if m.Every < leastEvery || m.ChargeFor <= 0 {
		return s, flex.Fail(
			flex.Invalid,
			"--every is %v at least, and --charge-for more than nothing",
			leastEvery,
		)
	}

	if m.Topic == "" || strings.ContainsAny(m.Topic, "/+# ") {
		return s, flex.Fail(
			flex.Invalid,
			"--topic is one word, without / + # or a blank",
		)
	}

	for _, text := range m.Site {
		id, err := flex.ParseID[flex.SiteID](text)
		if err != nil {
			return s, flex.Fail(flex.Invalid, "--site %s: %v", text, err)
		}

		s.Sites = append(s.Sites, client.SiteID(id))
	}

	var err error
	if m.CA != "" {
		s.TLS, err = trusting(m.CA)
	}

	return s, err
}

// trusting returns a TLS configuration that trusts only the certificates in a file, and not
// the system's.
func trusting(file string) (*tls.Config, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	known := x509.NewCertPool()
	if !known.AppendCertsFromPEM(pem) {
		return nil, flex.Fail(
			flex.Invalid,
			"--ca %s holds no certificate in PEM",
			file,
		)
	}

	return &tls.Config{
		RootCAs:    known,
		MinVersion: tls.VersionTLS12,
	}, nil
}
