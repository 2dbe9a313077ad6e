package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"flexd/internal/bridge"
	"flexd/internal/egress"
	"flexd/internal/flex"
)

// chargerCall is `flexd charger-call`.
type chargerCall struct {
	always
	ID      string `arg:"" help:"The charger's id."`
	Action  string `arg:"" help:"The call's name in the charger's OCPP version, such as Reset; or transactions, to list the charger's transactions; reports, for the reports that it was asked for; state, for whether it and its platform are connected."`
	Payload string `arg:"" optional:"" help:"The call's payload in JSON, as in '{\"type\":\"Soft\"}'; empty if not given." default:"{}"`

	Bridge string `help:"The bridge's --office-listen; ${default} if not given." default:"http://127.0.0.1:8889" env:"FLEXD_OCPP_OFFICE" placeholder:"URL"`
	Token  string `help:"Its --office-token; better in the environment." required:"" env:"FLEXD_OCPP_OFFICE_TOKEN" placeholder:"TOKEN"`
}

// Run makes one call to a charger, or reads the bridge's state of it, and prints the answer.
func (o *chargerCall) Run(ctx context.Context, c console) error {
	at := bridge.Client{
		Web:   egress.New(egress.Options{Allow: egress.Private}),
		URL:   o.Bridge,
		Token: flex.Secret(o.Token),
	}
	path := "/chargers/" + url.PathEscape(o.ID)

	var answer []byte
	var err error
	switch o.Action {
	case "transactions", "reports":
		answer, err = at.Read(ctx, path+"/"+o.Action)
	case "state":
		answer, err = at.Read(ctx, path)
	default:
		answer, err = at.Call(ctx, o.ID, o.Action, []byte(o.Payload))
	}

	if err == nil {
		fmt.Fprintln(c.out, strings.TrimSpace(string(answer)))
	}

	return err
}
