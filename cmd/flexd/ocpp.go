package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// flexdConnections is the most connections to flexd that the bridge has open.
const flexdConnections = 64

// ocppCommand is `flexd ocpp`.
type ocppCommand struct {
	Listen string `help:"Address that chargers connect to; ${default} if not given. From outside this machine as in --listen :8887." default:"127.0.0.1:8887" env:"FLEXD_OCPP_LISTEN" placeholder:"HOST:PORT"`

	Flexd    string `help:"Address of the flexd that plans; ${default} if not given." default:"http://127.0.0.1:8080" env:"FLEXD_OCPP_FLEXD" placeholder:"URL"`
	Username string `help:"The organisation's username at flexd." required:"" env:"FLEXD_OCPP_USERNAME" placeholder:"U"`
	Password string `help:"The organisation's password at flexd; better in the environment." required:"" env:"FLEXD_OCPP_PASSWORD" placeholder:"P"`

	EndpointListen string `help:"Address that flexd pushes schedules to; ${default} if not given." default:"127.0.0.1:8888" env:"FLEXD_OCPP_ENDPOINT_LISTEN" placeholder:"HOST:PORT"`
	EndpointURL    string `help:"URL at which flexd reaches --endpoint-listen; http:// and that address if not given." env:"FLEXD_OCPP_ENDPOINT_URL" placeholder:"URL"`

	Chargers        string            `help:"File with a line for each charger, as 'flexd charger-password CP1' prints them. It is read again when it changes." type:"existingfile" env:"FLEXD_OCPP_CHARGERS" placeholder:"FILE"`
	ChargerPassword string            `help:"Password of every charger that has none of its own, sent by HTTP basic authentication with the charger's id as the username." env:"FLEXD_OCPP_CHARGER_PASSWORD" placeholder:"P"`
	Charger         map[string]string `help:"A charger and its own password, ID=PASSWORD; may be given more than once. Better in --chargers: others on this machine can read arguments." env:"FLEXD_OCPP_CHARGER" placeholder:"ID=P"`
	TrustedProxies  []netip.Prefix    `help:"Networks of proxies in front of --listen whose X-Forwarded-For is believed: wrong passwords then count for the charger's own address." env:"FLEXD_OCPP_TRUSTED_PROXIES" placeholder:"CIDR"`
	NoPassword      bool              `help:"Admit chargers without a password. Anybody who reaches the address can pretend to be one, so their readings are not passed on." env:"FLEXD_OCPP_NO_PASSWORD"`

	Floor            string        `help:"Power in kW to which every charger is limited when it has no plan, also when flexd and the bridge are down. A charger's line in --chargers may name its own, floor=KW." env:"FLEXD_OCPP_FLOOR" placeholder:"KW"`
	Delay            time.Duration `help:"How late a charger may be in following its limit before the bridge sends it again; ${default} if not given, the longest random delay that British law requires." default:"10m" env:"FLEXD_OCPP_DELAY" placeholder:"DURATION"`
	OfficeListen     string        `help:"Address for flexd charger-call, as in 127.0.0.1:8889; none if not given." env:"FLEXD_OCPP_OFFICE_LISTEN" placeholder:"HOST:PORT"`
	OfficeToken      string        `help:"Token that callers of --office-listen must present, at least 16 characters; better in the environment." env:"FLEXD_OCPP_OFFICE_TOKEN" placeholder:"TOKEN"`
	Upstream         string        `help:"Address of the platform that chargers belong to, ws:// or wss:// without the charger's id: it authorises and bills, and flexd connects the two. A charger's line in --chargers may name its own, upstream=URL." env:"FLEXD_OCPP_UPSTREAM" placeholder:"URL"`
	UpstreamReadOnly bool          `help:"Do not let the platform command chargers." env:"FLEXD_OCPP_UPSTREAM_READ_ONLY"`
	Discharge        bool          `help:"Let cars give energy back, at charging stations that speak OCPP 2.1 and say that they can." env:"FLEXD_OCPP_DISCHARGE"`
	State            string        `help:"Folder with a file for each charger, so that a bridge that was stopped or killed during a charge continues where it was." env:"FLEXD_OCPP_STATE" placeholder:"DIR"`

	TLSCert     string `name:"tls-cert" help:"Serve chargers over TLS (wss://) with this certificate in PEM. It is read again when it changes." type:"existingfile" env:"FLEXD_OCPP_TLS_CERT" placeholder:"FILE"`
	TLSKey      string `name:"tls-key" help:"PEM file of the private key of --tls-cert." type:"existingfile" env:"FLEXD_OCPP_TLS_KEY" placeholder:"FILE"`
	TLSClientCA string `name:"tls-client-ca" help:"Require of chargers a certificate that was signed by the one in this file; a certificate's common name is the charger's id." type:"existingfile" env:"FLEXD_OCPP_TLS_CLIENT_CA" placeholder:"FILE"`

	TLSClientCAKey    string `name:"tls-client-ca-key" help:"Private key of --tls-client-ca: a charger that asks for a certificate gets one. Without this key, requests wait until a person signs them." type:"existingfile" env:"FLEXD_OCPP_TLS_CLIENT_CA_KEY" placeholder:"FILE"`
	TLSClientOptional bool   `name:"tls-client-optional" help:"Let a charger that has no certificate yet log in with its password, so that it can ask for one." env:"FLEXD_OCPP_TLS_CLIENT_OPTIONAL"`
}

// Run joins chargers to flexd until it is stopped.
func (o *ocppCommand) Run(ctx context.Context, c console) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}

	chargers, err := listenAt("--listen", o.Listen)
	if err != nil {
		return err
	}
	defer chargers.Close()

	address := "ws://" + chargers.Addr().String()
	if o.TLSCert != "" {
		config, err := ocppserver.TLS(o.TLSCert, o.TLSKey, o.TLSClientCA)
		if err != nil {
			return err
		}
		if o.TLSClientOptional {
			config.ClientAuth = tls.VerifyClientCertIfGiven
		}

		address = "wss://" + chargers.Addr().String()
		chargers = tls.NewListener(chargers, config)
	}

	pushes, err := listenAt("--endpoint-listen", o.EndpointListen)
	if err != nil {
		return err
	}
	defer pushes.Close()

	if o.OfficeListen != "" {
		settings.Office, err = listenAt("--office-listen", o.OfficeListen)
		if err != nil {
			return err
		}
		defer settings.Office.Close()
	}

	settings.EndpointURL = o.EndpointURL
	if settings.EndpointURL == "" {
		settings.EndpointURL = "http://" + pushes.Addr().String()
	}

	fmt.Fprintf(
		c.out,
		"listening for chargers on %s/CHARGER-ID, for schedules on %s\n",
		address,
		settings.EndpointURL,
	)

	return remote{URL: o.Flexd, Username: o.Username}.explain(o.serve(
		ctx,
		settings,
		chargers,
		pushes,
	))
}

func (o *ocppCommand) serve(
	ctx context.Context,
	s ocppserver.Settings,
	chargers, pushes net.Listener,
) error {
	return ocppserver.New(s).Serve(ctx, chargers, pushes)
}

// check refuses flags that do not go together.
func (o *ocppCommand) check() error {
	secured := o.ChargerPassword != "" || len(o.Charger) > 0 ||
		o.Chargers != "" || o.TLSClientCA != ""

	switch {
	case !secured && !o.NoPassword:
		return flex.Fail(
			flex.Invalid,
			"chargers need passwords: give --chargers FILE (flexd charger-password CP1 >> FILE makes a line), "+
				"--charger-password or --tls-client-ca; --no-password lets any in, and passes no readings on",
		)

	case o.OfficeListen != "" && len(o.OfficeToken) < 16:
		return flex.Fail(
			flex.Invalid,
			"--office-listen needs an --office-token of at least 16 characters",
		)

	case (o.TLSCert == "") != (o.TLSKey == ""):
		return flex.Fail(
			flex.Invalid,
			"--tls-cert and --tls-key go together",
		)

	case o.TLSClientCA != "" && o.TLSCert == "":
		return flex.Fail(
			flex.Invalid,
			"--tls-client-ca needs --tls-cert and --tls-key",
		)

	case o.TLSClientCA == "" && (o.TLSClientCAKey != "" || o.TLSClientOptional):
		return flex.Fail(
			flex.Invalid,
			"--tls-client-ca-key and --tls-client-optional need --tls-client-ca",
		)
	}

	return nil
}

// checkAddresses refuses addresses that are none, and a delay that cannot be.
func (o *ocppCommand) checkAddresses() error {
	for flag, address := range map[string]string{"--flexd": o.Flexd, "--endpoint-url": o.EndpointURL} {
		if err := checkURL(flag, address); err != nil {
			return err
		}
	}

	if o.Delay < 0 {
		return flex.Fail(flex.Invalid, "--delay is 0s or more, not %s", o.Delay)
	}

	return nil
}

// settings returns the bridge's settings from the flags.
func (o *ocppCommand) settings() (ocppserver.Settings, error) {
	if err := cmp.Or(o.check(), o.checkAddresses()); err != nil {
		return ocppserver.Settings{}, err
	}

	if o.NoPassword {
		slog.Warn("chargers without a password are let in: whoever reaches " +
			o.Listen +
			" can pass for one, and their readings are not passed on")
	}

	s := ocppserver.Settings{
		Client:           pooled(client.New(o.Flexd, o.Username, o.Password)),
		Password:         flex.Secret(o.ChargerPassword),
		Passwords:        o.Charger,
		TrustedProxies:   o.TrustedProxies,
		NoPassword:       o.NoPassword,
		State:            o.State,
		Delay:            o.Delay,
		UpstreamReadOnly: o.UpstreamReadOnly,
		Discharge:        o.Discharge,
		OfficeToken:      flex.Secret(o.OfficeToken),
		Now:              clock,
	}

	if err := o.rules(&s); err != nil {
		return s, err
	}

	var err error
	if o.Chargers != "" {
		s.Chargers, err = ocppserver.ReadChargers(o.Chargers, slog.Default())
	}

	return s, err
}

// rules reads the defaults for chargers whose lines have no settings of their own.
func (o *ocppCommand) rules(s *ocppserver.Settings) error {
	var err error
	if o.Floor != "" {
		s.Floor, err = ocppserver.ParseFloor(o.Floor)
		if err != nil {
			return flex.Fail(flex.Invalid, "--floor: %v", err)
		}
	}

	if o.TLSClientCA != "" {
		s.Authority, err = ocppserver.ReadAuthority(o.TLSClientCA, o.TLSClientCAKey)
		if err != nil {
			return flex.Fail(flex.Invalid, "--tls-client-ca-key: %v", err)
		}
	}

	if o.Upstream != "" {
		s.Upstream, err = ocppserver.ParseUpstream(o.Upstream)
		if err != nil {
			return flex.Fail(flex.Invalid, "--upstream: %v", err)
		}
	}

	return nil
}

// pooled limits a client's connections, however many chargers send at once.
func pooled(c *client.Client) *client.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost = flexdConnections
	transport.MaxIdleConnsPerHost = flexdConnections
	c.HTTP.Transport = &queue{
		next:   transport,
		places: make(chan struct{}, flexdConnections),
		limit:  c.HTTP.Timeout,
	}
	c.HTTP.Timeout = 0 // it would count the waiting for a place

	return c
}

// chargerPassword is `flexd charger-password`.
type chargerPassword struct {
	ID       string `arg:"" help:"The charger's id, as in: flexd charger-password CP1 >> chargers.txt"`
	Password string `help:"The password, at least 16 characters; made if not given." env:"FLEXD_CHARGER_PASSWORD" placeholder:"P"`
}

// Run prints the charger's line for --chargers, and the password on the standard error.
func (p *chargerPassword) Run(c console) error {
	password := p.Password
	if password == "" {
		password = rand.Text()
	}

	line, err := ocppserver.HashPassword(p.ID, password)
	if err != nil {
		return err
	}

	if p.Password == "" {
		fmt.Fprintf(c.err, "the password of %s is %s\n", p.ID, password)
	}
	fmt.Fprintln(c.out, line)

	return nil
}
