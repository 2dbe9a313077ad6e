package bridge

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
)

const (
	// callTime is how long an answer is waited for: a charger has 30 s.
	callTime = 45 * time.Second
	// answerMax is the longest answer that is read, in bytes.
	answerMax = 1 << 20
)

// Charger is whether a charger and its platform are there.
type Charger struct {
	ID        string    `json:"id"`
	Connected bool      `json:"connected"`
	OCPP      string    `json:"ocpp,omitempty"` // its version, while it is connected
	Platform  *Platform `json:"platform,omitempty"`
	// how often the bridge's work for it broke off, and was begun anew
	Failures   int         `json:"failures,omitempty"`
	Connectors []Connector `json:"connectors"`
	// Calls are those that may be made to it; not in lists.
	Calls []Call `json:"calls,omitempty"`
}

// Platform is whether a charger's platform above is there.
type Platform struct {
	Address   string `json:"address"` // with the charger's id
	Connected bool   `json:"connected"`
	// messages that it has not yet answered
	Waiting  int  `json:"waiting"`
	ReadOnly bool `json:"read_only"`
}

// Connector is what a connector said last.
type Connector struct {
	Number      int    `json:"connector_id"`
	AssetID     string `json:"asset_id,omitempty"` // empty if flexd has no such asset
	Status      string `json:"status"`             // empty until it says one
	Transaction int    `json:"transaction_id,omitzero"`
}

// Call is a call that may be made to a charger, with a body as an example.
type Call struct {
	Action  string          `json:"action"`
	Example json.RawMessage `json:"example"`
}

// Transaction is one as the charger reported it, energies in Wh.
type Transaction struct {
	Number    int       `json:"transaction_id"`
	Connector int       `json:"connector_id"`
	Tag       string    `json:"id_tag"`
	Start     time.Time `json:"started_at"`
	MeterWh   float64   `json:"meter_start_wh"`
	Stop      time.Time `json:"stopped_at,omitzero"`
	EndWh     float64   `json:"meter_stop_wh,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// Report is what a charger of OCPP 2.0.1 sent after it was asked to report, as it came.
type Report struct {
	At     time.Time       `json:"at"`
	Action string          `json:"action"` // NotifyReport, ReportChargingProfiles and the like
	Body   json.RawMessage `json:"body"`
}

// Tag is an id tag of the chargers' file.
type Tag struct {
	ID     string `json:"id"`
	Status string `json:"status"` // Accepted, Blocked or Expired
}

// Client asks a bridge. Its errors are made to be shown.
type Client struct {
	Web   *egress.Client
	URL   string // of the bridge's --office-listen
	Token flex.Secret
}

// OfAsset returns the charger that an asset is a connector of.
func (c *Client) OfAsset(ctx context.Context, asset flex.AssetID) (Charger, error) {
	var found Charger
	err := c.read(ctx, "/assets/"+asset.String(), &found)
	return found, err
}

// Transactions are a charger's, the newest last.
func (c *Client) Transactions(ctx context.Context, charger string) ([]Transaction, error) {
	var all []Transaction
	err := c.read(ctx, "/chargers/"+url.PathEscape(charger)+"/transactions", &all)
	return all, err
}

// Reports are what a charger reported since the bridge began, the newest last.
func (c *Client) Reports(ctx context.Context, charger string) ([]Report, error) {
	var all []Report
	err := c.read(ctx, "/chargers/"+url.PathEscape(charger)+"/reports", &all)
	return all, err
}

// Tags are the id tags of the bridge, by id.
func (c *Client) Tags(ctx context.Context) ([]Tag, error) {
	var all []Tag
	err := c.read(ctx, "/tags", &all)
	return all, err
}

// Call makes a call to a charger, its body in JSON, and returns what the charger answered.
func (c *Client) Call(ctx context.Context, charger, action string, body []byte) ([]byte, error) {
	return c.ask(
		ctx,
		"POST",
		"/chargers/"+url.PathEscape(charger)+"/call/"+url.PathEscape(action),
		body,
	)
}

// Read returns an answer of the bridge as it came, such as of /chargers.
func (c *Client) Read(ctx context.Context, path string) ([]byte, error) {
	return c.ask(ctx, "GET", path, nil)
}

func (c *Client) read(ctx context.Context, path string, to any) error {
	text, err := c.Read(ctx, path)
	if err == nil && json.Unmarshal(text, to) != nil {
		return flex.Fail(flex.Unavailable, "the bridge's answer is not understood: it may be of another version")
	}

	return err
}

func (c *Client) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	answer, err := c.Web.Do(ctx, egress.Request{
		Method:    method,
		URL:       strings.TrimRight(c.URL, "/") + path,
		Header:    map[string]string{"Authorization": "Bearer " + c.Token.Reveal()},
		Body:      body,
		AnswerMax: answerMax,
		Time:      callTime,
	})
	if err != nil {
		return nil, flex.Fail(flex.Unavailable, "the bridge does not answer: %v", err)
	}

	if answer.Status != 200 {
		return nil, flex.Fail(
			kindOf(answer.Status),
			"%s",
			strings.TrimSpace(string(answer.Body)),
		)
	}

	return answer.Body, nil
}

// kindOf is what a status of the bridge means here. That its token is wrong is no fault of who asks.
func kindOf(status int) flex.Kind {
	switch status {
	case 400:
		return flex.Malformed
	case 404:
		return flex.NotFound
	case 409:
		return flex.Conflict
	case 422, 501:
		return flex.Invalid
	case 504:
		return flex.TimedOut
	}

	return flex.Unavailable
}
