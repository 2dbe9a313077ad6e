package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// ocppCommand is `flexd ocpp`.
type ocppCommand struct {
	Listen string `help:"Address that chargers connect to; ${default} if not given." default:":8887" env:"FLEXD_OCPP_LISTEN" placeholder:"HOST:PORT"`

	Flexd    string `help:"Address of the flexd that plans; ${default} if not given." default:"http://127.0.0.1:8080" env:"FLEXD_OCPP_FLEXD" placeholder:"URL"`
	Username string `help:"The organisation's username at flexd." required:"" env:"FLEXD_OCPP_USERNAME" placeholder:"U"`
	Password string `help:"The organisation's password at flexd; better in the environment." required:"" env:"FLEXD_OCPP_PASSWORD" placeholder:"P"`

	EndpointListen string `help:"Address that flexd pushes schedules to; ${default} if not given." default:"127.0.0.1:8888" env:"FLEXD_OCPP_ENDPOINT_LISTEN" placeholder:"HOST:PORT"`
	EndpointURL    string `help:"That address as flexd reaches it. http:// and the listening address if not given." env:"FLEXD_OCPP_ENDPOINT_URL" placeholder:"URL"`

	ChargerPassword string            `help:"Password of every charger, sent by HTTP basic authentication with the charger's id as the username." env:"FLEXD_OCPP_CHARGER_PASSWORD" placeholder:"P"`
	Charger         map[string]string `help:"A charger and its own password, ID=PASSWORD; may be given more than once. Without --charger-password no others may connect." env:"FLEXD_OCPP_CHARGER" placeholder:"ID=P"`
}

// Run joins chargers to flexd until it is told to stop.
func (o *ocppCommand) Run(ctx context.Context, c console) error {
	chargers, err := listenAt("--listen", o.Listen)
	if err != nil {
		return err
	}

	defer chargers.Close()

	pushes, err := listenAt("--endpoint-listen", o.EndpointListen)
	if err != nil {
		return err
	}

	defer pushes.Close()

	url := o.EndpointURL
	if url == "" {
		url = "http://" + pushes.Addr().String()
	}

	if at, ok := chargers.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() && o.ChargerPassword == "" && len(o.Charger) == 0 {
		slog.Warn("chargers are asked for no password: whoever reaches " + chargers.Addr().String() + " can pass for one")
	}

	b := ocppserver.New(ocppserver.Settings{
		Client: client.New(o.Flexd, o.Username, o.Password), EndpointURL: url,
		Password: flex.Secret(o.ChargerPassword), Passwords: o.Charger,
	})

	fmt.Fprintf(c.out, "listening for chargers on ws://%s/CHARGER-ID, for schedules on %s\n", chargers.Addr(), url)
	return remote{URL: o.Flexd, Username: o.Username}.explain(b.Serve(ctx, chargers, pushes))
}
