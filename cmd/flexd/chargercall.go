package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"flexd/internal/flex"
)

// chargerCallTime is how long a charger's answer is waited for.
const chargerCallTime = 45 * time.Second

// chargerCall is `flexd charger-call`.
type chargerCall struct {
	ID      string `arg:"" help:"The charger's id."`
	Action  string `arg:"" help:"The call's name in the charger's OCPP, as in Reset; or transactions, to list the charger's; or state, whether it and its platform are there."`
	Payload string `arg:"" optional:"" help:"The call's payload in JSON, as in '{\"type\":\"Soft\"}'; empty if not given." default:"{}"`

	Bridge string `help:"The bridge's --office-listen; ${default} if not given." default:"http://127.0.0.1:8889" env:"FLEXD_OCPP_OFFICE" placeholder:"URL"`
	Token  string `help:"Its --office-token; better in the environment." required:"" env:"FLEXD_OCPP_OFFICE_TOKEN" placeholder:"TOKEN"`
}

// Run makes one call to a charger, or reads what the bridge knows of it, and prints the answer.
func (o *chargerCall) Run(ctx context.Context, c console) error {
	ctx, cancel := context.WithTimeout(ctx, chargerCallTime)
	defer cancel()

	method, path := http.MethodPost, "/call/"+url.PathEscape(o.Action)
	switch o.Action {
	case "transactions":
		method, path = http.MethodGet, "/transactions"
	case "state":
		method, path = http.MethodGet, ""
	}

	address := strings.TrimRight(o.Bridge, "/") + "/chargers/" +
		url.PathEscape(o.ID) + path
	r, err := http.NewRequestWithContext(
		ctx,
		method,
		address,
		strings.NewReader(o.Payload),
	)
	if err != nil {
		return flex.Fail(flex.Invalid, "--bridge: %v", err)
	}

	r.Header.Set("Authorization", "Bearer "+o.Token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return flex.Fail(
			flex.Invalid,
			"%s: %s",
			resp.Status,
			strings.TrimSpace(string(answer)),
		)
	}

	fmt.Fprintln(c.out, strings.TrimSpace(string(answer)))

	return nil
}
