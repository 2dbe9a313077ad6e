package main

import (
	"context"
	"time"

	"flexd/internal/adr"
	"flexd/internal/app"
	"flexd/internal/egress"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// openADRUpstream is `flexd openadr upstream`.
type openADRUpstream struct {
	Add    openADRUpstreamAdd    `cmd:"" help:"Follow a program on another party's OpenADR server, as its VEN: the program and its events are copied to a program here, which flexd openadr bind can bind. Example: flexd openadr upstream add \"the utility\" --url https://vtn.example.com/openadr3/3.1.0 --client-id acme --program demand-response"`
	List   openADRUpstreamList   `cmd:"" help:"List the other parties' servers, when each last answered, and what is wrong."`
	Remove openADRUpstreamRemove `cmd:"" help:"Remove a server, and withdraw the requests of its events."`
}

// upstreamReach has the private networks in which another party's server may be.
type upstreamReach struct {
	AllowPrivateEndpoints reach `help:"Allow an http:// server in a private network: a list as for flexd serve, or all private networks if no list is given." env:"FLEXD_ALLOW_PRIVATE_ENDPOINTS" placeholder:"LIST"`
}

// open lets the service reach it.
func (r upstreamReach) open(s *adr.Service) {
	s.PlainHTTP = r.AllowPrivateEndpoints.Any()
	s.Out = egress.New(egress.Options{
		Allow: r.AllowPrivateEndpoints.Prefixes,
		Hosts: r.AllowPrivateEndpoints.Hosts,
	})
}

type openADRUpstreamAdd struct {
	ofOrg
	form
	upstreamReach
	Name     string        `arg:"" help:"The name of the program on this flexd, and of the VEN on that server."`
	URL      string        `name:"url" help:"The server's address, up to the version." required:"" placeholder:"URL"`
	TokenURL string        `name:"token-url" help:"The server's token endpoint (OAuth 2 client credentials); auth/token below --url if not given." placeholder:"URL"`
	Client   string        `name:"client-id" help:"The client id that the server's operator gave you." required:"" placeholder:"ID"`
	Secret   string        `help:"The client secret that the server's operator gave you. Better in the environment than where ps shows it." env:"FLEXD_OPENADR_SECRET" required:"" placeholder:"S"`
	Program  string        `help:"The program's id on that server." required:"" placeholder:"ID"`
	Poll     time.Duration `help:"How often to ask the server for changes: 10s to 1h." default:"30s"`
	Callback string        `help:"This flexd's address as that server reaches it, such as https://flexd.example.com: the server then calls when something has changed; it is polled as well." placeholder:"URL"`
	PerAsset bool          `help:"If an event asks for no aggregate, report what each asset draws, by the asset's id; without this flag only the sum of the program's scope."`
	Silence  time.Duration `help:"After how long without an answer the server is listed as an exception: up to 168h." default:"5m"`
}

// Run adds the server.
func (o *openADRUpstreamAdd) Run(ctx context.Context, c console) error {
	return o.actOn(
		ctx,
		"add openadr server",
		o.Name,
		func(h *app.App, org flex.Org) error {
			u := records.ADRUpstream{
				Name:     o.Name,
				URL:      o.URL,
				TokenURL: o.TokenURL,
				Client:   o.Client,
				Secret:   flex.Secret(o.Secret),
				Remote:   o.Program,
				Poll:     o.Poll,
				Silence:  o.Silence,
				Callback: o.Callback,
				PerAsset: o.PerAsset,
			}

			o.upstreamReach.open(h.ADR)
			err := h.ADR.AddUpstream(ctx, org.ID, &u)
			if err == nil {
				err = o.print(
					c,
					fields{"program_id": u.Program},
					"%s is its program here: flexd openadr bind %s has its events carried out.\n",
					u.Program,
					u.Program,
				)
			}

			return err
		},
	)
}

type openADRUpstreamList struct {
	ofOrg
	JSON bool `help:"Print as JSON." name:"json"`
}

// upstreamRow is a server as it is printed.
type upstreamRow struct {
	Program   string    `json:"program_id"`
	Name      string    `json:"name"`
	URL       string    `json:"url"`
	Client    string    `json:"client_id"`
	Remote    string    `json:"remote_program_id"`
	Poll      string    `json:"poll"`
	Silence   string    `json:"silence"`
	HeardAt   time.Time `json:"heard_at,omitzero"`
	NumEvents int       `json:"num_events"`
	Calls     bool      `json:"calls"`     // it has the subscription
	PerAsset  bool      `json:"per_asset"` // it has what each asset draws
	Error     string    `json:"error,omitempty"`
}

func (r upstreamRow) cells() []any {
	return []any{
		r.Program,
		r.Name,
		r.URL,
		r.Client,
		r.Remote,
		r.Poll,
		r.Silence,
		r.HeardAt,
		r.NumEvents,
		r.Calls,
		r.Error,
	}
}

// Run lists the servers.
func (o *openADRUpstreamList) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	found, err := h.ADR.Upstreams(ctx, org.ID)
	if err != nil {
		return err
	}

	rows := []upstreamRow{}
	for _, u := range found {
		rows = append(rows, upstreamRow{
			u.Program.String(),
			u.Name,
			u.URL,
			u.Client,
			u.Remote,
			u.Poll.String(),
			u.Silence.String(),
			u.AnsweredAt(),
			u.NumEvents,
			u.Subscription != "",
			u.PerAsset,
			u.Error,
		})
	}

	return list(
		c,
		o.JSON,
		rows,
		"PROGRAM\tNAME\tURL\tCLIENT\tITS PROGRAM\tEVERY\tSILENCE\tHEARD\tEVENTS\tCALLS\tERROR",
		upstreamRow.cells,
	)
}

type openADRUpstreamRemove struct {
	ofOrg
	upstreamReach
	Program string `arg:"" help:"The program's id on this flexd."`
}

// Run removes the server.
func (o *openADRUpstreamRemove) Run(ctx context.Context) error {
	id, err := adr.ParseID(o.Program)
	if err != nil {
		return err
	}

	return o.actOn(
		ctx,
		"remove openadr server",
		o.Program,
		func(h *app.App, org flex.Org) error {
			o.upstreamReach.open(h.ADR)
			return h.ADR.RemoveUpstream(ctx, org.ID, id)
		},
	)
}
