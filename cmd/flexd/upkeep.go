package main

import (
	"context"
	"fmt"
	"strings"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// verify is `flexd verify`.
type verify struct {
	store
	JSON bool `help:"Print as JSON." name:"json"`
}

// Run checks the store against every law about its records.
func (v *verify) Run(ctx context.Context, c console) error {
	h, err := v.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	findings, err := h.DB.Verify(ctx)
	if err != nil {
		return err
	}

	switch {
	case v.JSON:
		if findings == nil {
			findings = []string{}
		}

		err := c.json(map[string]any{
			"laws":     records.Laws(),
			"findings": findings,
		})
		if err != nil {
			return err
		}
	case len(findings) == 0:
		fmt.Fprintf(c.out, "%d laws hold\n", len(records.Laws()))
	default:
		fmt.Fprintln(c.out, strings.Join(findings, "\n"))
	}

	if len(findings) > 0 {
		return fmt.Errorf("%d findings", len(findings))
	}

	return nil
}

// endpoint is `flexd endpoint`.
type endpoint struct {
	Set  endpointSet  `cmd:"" help:"Set the endpoint of an organisation's charging profiles or dispatches."`
	List endpointList `cmd:"" help:"Show where an organisation's pushes go."`
}

type endpointSet struct {
	store
	form
	Name      string   `arg:"" help:"Name of the organisation."`
	URL       string   `name:"url" help:"URL, which may contain {asset_id}, {external_id} and {site_id}." required:"" placeholder:"URL"`
	Secret    string   `help:"Signing secret, whsec_ and base64; made and printed once if there is none." placeholder:"S"`
	Header    []string `help:"Header field of every push, Name:Value; may be repeated." placeholder:"K:V" sep:"none"`
	Bare      bool     `help:"Send the charging profile alone, without connectorId around it."`
	Nulls     bool     `help:"Write members of a profile that have no value as null; strict OCPP 1.6 libraries refuse them."`
	Batch     bool     `help:"Send a dispatch as one message for all its assets."`
	Discharge bool     `help:"The endpoint accepts schedules that discharge a car: periods with limits below zero, which OCPP 1.6 does not have."`
	Rate      int      `help:"Pushes a second at most; if not given, the present value, or 1000 for a new endpoint." placeholder:"N"`
	Dispatch  bool     `help:"Set the endpoint of battery dispatches in place of that of charging profiles."`

	AllowPrivateEndpoints reach `help:"Allow http:// URLs and private networks: a list as for flexd serve, or all private networks if no list is given." env:"FLEXD_ALLOW_PRIVATE_ENDPOINTS" placeholder:"LIST"`
}

// endpointSettings returns the endpoint's settings from the flags.
func (e *endpointSet) endpointSettings() (delivery.Settings, error) {
	s := delivery.Settings{
		URL:    e.URL,
		Secret: flex.Secret(e.Secret),
		Bare:   e.Bare,
		Nulls:  e.Nulls,
		Batch:  e.Batch,
		Rate:   e.Rate,
	}

	s.Discharge = new(flex.NoDischarge)
	if e.Discharge {
		*s.Discharge = flex.NegativeLimits
	}

	for _, line := range e.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return s, flex.Fail(
				flex.Invalid,
				"header %q is not of the form Name:Value",
				line,
			)
		}

		s.Headers = append(s.Headers, flex.EndpointHeader{
			Name:  strings.TrimSpace(name),
			Value: flex.Secret(strings.TrimSpace(value)),
		})
	}

	return s, nil
}

// Run sets the endpoint.
func (e *endpointSet) Run(ctx context.Context, c console) error {
	settings, err := e.settings()
	if err != nil {
		return err
	}

	settings.PrivateEndpoints = e.AllowPrivateEndpoints.Reach
	h, org, err := openSettings(ctx, settings, e.Name)
	if err != nil {
		return err
	}

	defer h.Close()

	s, err := e.endpointSettings()
	if err != nil {
		return err
	}

	name := flex.ScheduleEndpoint
	if e.Dispatch {
		name = flex.DispatchEndpoint
	}

	var set flex.Endpoint
	var secretMade bool
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org.ID,
			Act:     "set endpoint",
			Subject: e.URL,
		},
		func() error {
			var err error
			set, secretMade, err = h.Push.SetEndpoint(ctx, org.ID, name, s)
			return err
		},
	)

	if err != nil {
		return err
	}

	return e.printEndpoint(c, set, secretMade)
}

// printEndpoint prints where pushes go, and the secret if one was made.
func (e *endpointSet) printEndpoint(c console, set flex.Endpoint, secretMade bool) error {
	secret, message := "", ""
	if secretMade {
		secret = set.Secret.Reveal()
		message = fmt.Sprintf(
			"secret  %s\n\nThe secret is shown this once. Receivers verify each push with it.\n",
			secret,
		)
	}

	return e.print(
		c,
		fields{"name": set.Name, "url": set.URL, "secret": secret},
		"%s pushes of %s go to %s\n%s",
		set.Name,
		e.Name,
		set.URL,
		message,
	)
}

type endpointList struct {
	store
	Name string `arg:"" help:"Name of the organisation."`
	JSON bool   `help:"Print as JSON." name:"json"`
}

// endpointRow is the endpoint to which pushes of a kind go, as it is printed.
type endpointRow struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Enabled bool   `json:"enabled"`
	Reason  string `json:"reason,omitempty"` // why it is disabled
}

// Run lists the endpoints.
func (e *endpointList) Run(ctx context.Context, c console) error {
	h, org, err := openFor(ctx, e.store, e.Name)
	if err != nil {
		return err
	}

	defer h.Close()

	endpoints, err := h.Push.Endpoints(ctx, org.ID)
	if err != nil {
		return err
	}

	if len(endpoints) == 0 && !e.JSON {
		fmt.Fprintf(
			c.out,
			"%s has no endpoint: set one with `flexd endpoint set %q --url URL`\n",
			e.Name,
			e.Name,
		)

		return nil
	}

	rows := []endpointRow{}
	for _, x := range endpoints {
		rows = append(rows, endpointRow{
			Name:    string(x.Name),
			URL:     x.URL,
			Enabled: x.Enabled,
			Reason:  x.Reason,
		})
	}

	return list(c, e.JSON, rows, "NAME\tURL\tENABLED\tREASON", func(x endpointRow) []any {
		return []any{x.Name, x.URL, x.Enabled, x.Reason}
	})
}
