package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"flexd/internal/access"
	"flexd/internal/bridge"
	"flexd/internal/flex"
)

// chargerMessagesMax is the number of a charger's transactions on its page.
const chargerMessagesMax = 50

// chargerPage is a charger as its bridge knows it.
type chargerPage struct {
	Asset   flex.AssetID   `json:"asset_id"`
	Charger bridge.Charger `json:"charger"`
	Note    string         `json:"note,omitempty"` // why nothing is known of it
	// the newest first
	Transactions []bridge.Transaction `json:"transactions"`
	Reports      []bridge.Report      `json:"reports"`
	Tags         []bridge.Tag         `json:"tags"`

	// the call that is chosen, its body, and what came back
	Action string `json:"action,omitempty"`
	Body   string `json:"body,omitempty"`
	Answer string `json:"answer,omitempty"`

	org  flex.OrgID
	name string
}

// chargerOf reads the charger of an asset from the bridge. If the bridge does not know it, the
// page says so.
func (s *Server) chargerOf(r *request) (*chargerPage, error) {
	if s.Bridge == nil {
		return nil, flex.Fail(
			flex.NotFound,
			"flexd was started without a bridge: give flexd serve --bridge and --bridge-token-file",
		)
	}

	p := &chargerPage{}
	var err error
	p.Asset, p.org, err = pathID(r, "asset", s.Registry.AssetOrg)
	if err != nil {
		return nil, err
	}

	a, err := s.Registry.Asset(r.Context(), p.org, p.Asset)
	if err != nil {
		return nil, err
	}

	p.name = a.ExternalID
	if err := s.askBridge(r, p); err != nil {
		p.Note = sentence(err.Error())
	}

	return p, nil
}

// askBridge reads a charger, its transactions and the tags.
func (s *Server) askBridge(r *request, p *chargerPage) error {
	var err error
	p.Charger, err = s.Bridge.OfAsset(r.Context(), p.Asset)
	if err != nil {
		return err
	}

	p.Transactions, err = s.Bridge.Transactions(r.Context(), p.Charger.ID)
	if err != nil {
		return err
	}

	slices.Reverse(p.Transactions)
	p.Transactions = p.Transactions[:min(len(p.Transactions), chargerMessagesMax)]
	p.Reports, err = s.Bridge.Reports(r.Context(), p.Charger.ID)
	if err != nil {
		return err
	}

	slices.Reverse(p.Reports)
	p.Tags, err = s.Bridge.Tags(r.Context())

	return err
}

// charger shows a charger at its bridge, with a form for calls.
func (s *Server) charger(r *request) (view, error) {
	p, err := s.chargerOf(r)
	if err != nil {
		return view{}, err
	}

	p.Action = r.URL.Query().Get("call")
	for _, c := range p.Charger.Calls {
		if c.Action == p.Action {
			var b bytes.Buffer
			err = json.Indent(&b, c.Example, "", "  ")
			p.Body = b.String()
		}
	}

	return p.view(), err
}

// callCharger makes a call and shows the answer. Both are written to the audit log.
func (s *Server) callCharger(r *request) (view, error) {
	call := r.PostFormValue("call")
	if err := checkConfirmation(r, call); err != nil {
		return view{}, err
	}

	p, err := s.chargerOf(r)
	if err != nil {
		return view{}, err
	}
	if p.Charger.ID == "" {
		return view{}, flex.Fail(flex.Conflict, "nothing is called: %s", p.Note)
	}

	p.Action = call
	p.Body = strings.TrimSpace(r.PostFormValue("body"))
	detail := p.Action + " " + withoutSecrets(p.Body)
	act := access.Action{
		Act:     "call charger",
		Org:     p.org,
		Subject: p.Asset.String(),
		Detail:  detail,
	}

	err = s.Access.ActWithDetail(
		r.Context(),
		act.By(r.operator.Name, r.from),
		func() (string, error) {
			answer, err := s.Bridge.Call(r.Context(), p.Charger.ID, p.Action, []byte(p.Body))
			p.Answer = strings.TrimSpace(string(answer))
			if err != nil {
				return "", err
			}

			return detail + ": " + shortened(p.Answer), nil
		},
	)

	return p.view(), err
}

// detailMax is how much of an answer is written to the audit log, in bytes.
const detailMax = 1000

func shortened(text string) string {
	if len(text) <= detailMax {
		return text
	}

	return strings.ToValidUTF8(text[:detailMax], "") + " …"
}

// withoutSecrets returns a call's body for the audit log, or a placeholder if it may contain a
// password.
func withoutSecrets(body string) string {
	for _, secret := range []string{"AuthorizationKey", "BasicAuthPassword", "assword", "://", "secret"} {
		if strings.Contains(body, secret) {
			return "with a body that may hold a password and is not kept"
		}
	}

	return shortened(strings.Join(strings.Fields(body), " "))
}

func (p *chargerPage) view() view {
	return view{
		page:  "charger",
		title: cmp.Or(p.name, short(p.Asset)) + " at its bridge",
		crumbs: []crumb{
			{"Assets", "/console/assets?org=" + p.org.String()},
			{p.name, "/console/assets/" + p.Asset.String()},
		},
		data:   p,
		record: p,
	}
}
