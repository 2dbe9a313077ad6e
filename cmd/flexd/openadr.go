package main

import (
	"context"
	"slices"
	"time"

	"flexd/internal/adr"
	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// openADR is `flexd openadr`.
type openADR struct {
	Client   openADRClient   `cmd:"" help:"Clients of an organisation's OpenADR server: business logic and VENs."`
	Notices  openADRNotices  `cmd:"" help:"The notices to subscribers, and their results."`
	List     openADRList     `cmd:"" help:"The programs, and for which part of the fleet each one's events are."`
	Bind     openADRBind     `cmd:"" help:"Bind a program's events to a part of the fleet: their requests become instructions. Example: flexd openadr bind PROGRAM --group \"feeder 7\" --service dno --simple-kw=-100,-200"`
	Unbind   openADRUnbind   `cmd:"" help:"End a binding: the requests of the program's events are withdrawn, and its instructions are stopped."`
	Upstream openADRUpstream `cmd:"" help:"Other parties' servers, of which the organisation is a VEN."`
	Orders   openADROrders   `cmd:"" help:"The requests of events to the fleet and their results, the newest first."`
}

type openADRClient struct {
	Add  openADRClientAdd  `cmd:"" help:"Create a client, and print its secret, once. Example: flexd openadr client add Acme acme-dispatch --role BL. flexd credential roll, limit and revoke take the client's id."`
	List openADRClientList `cmd:"" help:"The clients: role, latest use, limits."`
}

// openADRRoles are the roles as OpenADR names them.
var openADRRoles = map[string]flex.Role{
	"BL":  flex.OpenADRBusiness,
	"VEN": flex.OpenADRNode,
}

type openADRClientAdd struct {
	cellFlags
	limitFlags
	Org      string `arg:"" help:"Name of the organisation."`
	ClientID string `arg:"" help:"The client's id. That of a revoked client of the organisation may be used again."`
	Role     string `help:"BL for business logic, which runs programs; VEN for a virtual end node, which answers them." enum:"BL,VEN" required:""`
	Secret   string `help:"Its secret; made if not given. Better in the environment than where ps shows it." env:"FLEXD_OPENADR_SECRET" placeholder:"S"`
	JSON     bool   `help:"Print as JSON." name:"json"`
}

// Run makes the client.
func (o *openADRClientAdd) Run(ctx context.Context, c console) error {
	if o.ClientID == adr.Reporter { // the server refuses its tokens
		return flex.Fail(
			flex.Invalid,
			"the client id %s is that of the server's own reports: take another",
			adr.Reporter,
		)
	}

	limits, err := o.limits()
	if err != nil {
		return err
	}

	var secret flex.Secret
	orgStore := ofOrg{store: o.store, Org: o.Org}
	err = orgStore.actOn(
		ctx,
		"add openadr client",
		o.ClientID,
		func(h *app.App, org flex.Org) error {
			h.Access.Elsewhere = o.eachOtherCell()

			var err error
			secret, err = h.Access.AddCredential(
				ctx,
				org.ID,
				o.ClientID,
				flex.Secret(o.Secret),
				[]flex.Role{openADRRoles[o.Role]},
				limits,
			)

			return err
		},
	)

	if err != nil {
		return err
	}

	return printCredential(c, o.JSON, o.ClientID, secret)
}

type openADRClientList struct {
	store
	Org  string `arg:"" help:"Name of the organisation."`
	JSON bool   `help:"Print as JSON." name:"json"`
}

// Run lists the clients.
func (o *openADRClientList) Run(ctx context.Context, c console) error {
	h, org, err := ofOrg{store: o.store, Org: o.Org}.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	found, err := h.Access.Credentials(ctx, org.ID)
	if err != nil {
		return err
	}

	found = slices.DeleteFunc(found, func(x records.Credential) bool {
		return !slices.Contains(x.Roles, flex.OpenADRBusiness) &&
			!slices.Contains(x.Roles, flex.OpenADRNode)
	})

	return listCredentials(c, o.JSON, found)
}

type openADRNotices struct {
	ofOrg
	Limit listLimit `help:"How many at most, the newest first." default:"50"`
	JSON  bool      `help:"Print as JSON." name:"json"`
}

// noticeRow is a notice as it is printed.
type noticeRow struct {
	Subscription string    `json:"subscription_id"`
	URL          string    `json:"url"`
	QueuedAt     time.Time `json:"queued_at"`
	SentAt       time.Time `json:"sent_at,omitzero"`
	LostAt       time.Time `json:"given_up_at,omitzero"`
	Tries        int       `json:"num_tries"`
	Error        string    `json:"error,omitempty"`
}

// Run lists the notices.
func (o *openADRNotices) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	rows := []noticeRow{}
	err = h.DB.Read(ctx, org.ID, func(tx *records.Tx) error {
		sent, err := tx.ADRNotices(ctx, int(o.Limit))
		for _, n := range sent {
			rows = append(rows, noticeRow{
				n.Subscription.String(),
				n.URL,
				n.QueuedAt,
				n.SentAt,
				n.LostAt,
				n.Tries,
				n.Error,
			})
		}

		return err
	})

	if err != nil {
		return err
	}

	return list(
		c,
		o.JSON,
		rows,
		"SUBSCRIPTION\tURL\tQUEUED\tSENT\tGIVEN UP\tTRIES\tERROR",
		noticeRow.cells,
	)
}

func (r noticeRow) cells() []any {
	return []any{
		r.Subscription,
		r.URL,
		r.QueuedAt,
		r.SentAt,
		r.LostAt,
		r.Tries,
		r.Error,
	}
}

// openADRSetting switches an organisation's OpenADR server on and off.
func openADRSetting() setting {
	s := setting{
		name:     "openadr",
		standard: "false",
		help:     "whether the organisation's OpenADR clients are served, at /openadr3/3.1.0",
	}

	s.show, s.set = truthOf(
		func(o *flex.OrgSettings) *bool { return &o.OpenADR },
		true,
	)

	s.clear = func(o *flex.OrgSettings) { o.OpenADR = false }

	return s
}
