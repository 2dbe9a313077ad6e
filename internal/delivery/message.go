package delivery

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/store"
)

// errRecordDeleted says that the record of a push was deleted.
var errRecordDeleted = errors.New("the record that it announces was deleted")

// connector is the connector id of a wrapped profile. An asset is one connector.
const connector = 1

// testTime is the duration of a test message's profile.
const testTime = time.Minute

// instant is the format of instants in bodies.
const instant = time.RFC3339

// render renders the body of a push. It depends on its arguments alone, so that a retry has
// the same bytes.
func render(
	e *flex.Endpoint,
	p *store.ClaimedPush,
	base string,
) ([]byte, error) {
	switch {
	case p.Unread != nil:
		return nil, p.Unread

	case p.Kind == store.SchedulePush && p.Schedule != nil:
		return scheduleBody(e, p.AssetID, p.Schedule)

	case p.Kind == store.DispatchPush && p.Dispatch != nil:
		return dispatchBody(p.Dispatch, base)

	case p.Kind == store.InvitationPush && p.Invitation != nil:
		return invitationBody(p.Invitation)

	case p.Kind == store.TestPush:
		return renderTest(e, p, base)
	}

	return nil, errRecordDeleted
}

// renderTest renders the body of a test message, in the endpoint's form.
func renderTest(
	e *flex.Endpoint,
	p *store.ClaimedPush,
	base string,
) ([]byte, error) {
	switch p.To {
	case flex.InvitationEndpoint:
		return invitationBody(testInvitation(p))

	case flex.DispatchEndpoint:
		d := store.Dispatch{
			ID:       p.EventID,
			Market:   "test",
			IssuedAt: p.QueuedAt,
			Batch:    e.Batch,
			Assets:   []store.DispatchedAsset{{}},
		}

		d.From = p.QueuedAt.Truncate(flex.HalfHour).Add(flex.HalfHour)
		d.To = d.From.Add(flex.HalfHour)

		return dispatchBody(&d, base)
	}

	from := p.QueuedAt.Truncate(time.Second)

	return scheduleBody(
		e,
		flex.AssetID{},
		&flex.Schedule{Steps: []flex.Step{
			{Span: flex.Span{From: from, To: from.Add(testTime)}, Limit: flex.NoLimit},
		}},
	)
}

// scheduleBody renders a schedule. For an endpoint that does not support discharging, these
// periods are left out: the car then ends with more than was planned.
func scheduleBody(
	e *flex.Endpoint,
	asset flex.AssetID,
	s *flex.Schedule,
) ([]byte, error) {
	discharges := s.Discharges
	if e.Discharge != flex.NegativeLimits {
		discharges = nil
	}

	p, err := profileOf(asset, s, discharges)
	if err != nil {
		return nil, err
	}

	p.Phases = s.Phases
	form := ocpp.Form{Bare: e.Bare, Nulls: e.Nulls, Heat: s.Heat}

	return p.Message(connector, form), nil
}

// profileOf returns the profile of a schedule, with its discharging.
func profileOf(
	asset flex.AssetID,
	s *flex.Schedule,
	discharges []flex.Step,
) (ocpp.Profile, error) {
	if s.Heat != nil {
		return ocpp.NewSteered(asset, s.Steps, s.Heat)
	}
	if len(discharges) > 0 {
		return ocpp.NewDischarging(asset, s.Steps, discharges)
	}

	return ocpp.New(asset, s.Steps)
}

// dispatchEvent is DispatchEvent of the interface.
type dispatchEvent struct {
	AssetID   flex.AssetID `json:"asset_id"`
	EventID   flex.EventID `json:"event_id"`
	Issued    string       `json:"issued_timestamp"`
	Timestamp string       `json:"event_timestamp"`
	Market    string       `json:"market_id"`
	Level     float64      `json:"level_kw"`
	From      string       `json:"from_time"`
	To        string       `json:"to_time"`
	Callback  string       `json:"update_status_callback"`
}

// dispatchBatch is the batched form: one message for all assets of an event.
type dispatchBatch struct {
	EventID flex.EventID     `json:"event_id"`
	Issued  string           `json:"issued_timestamp"`
	Start   string           `json:"start_time"`
	End     string           `json:"end_time"`
	Assets  []dispatchMember `json:"assets"`
}

type dispatchMember struct {
	AssetID flex.AssetID `json:"asset_id"`
	Power   float64      `json:"power_kw"`
}

func dispatchBody(d *store.Dispatch, base string) ([]byte, error) {
	issuedAt := d.IssuedAt.Truncate(time.Second).Format(instant)
	from := d.From.Format(instant)
	to := d.To.Format(instant)

	if d.Batch {
		b := dispatchBatch{
			EventID: d.ID,
			Issued:  issuedAt,
			Start:   from,
			End:     to,
		}

		for _, a := range d.Assets {
			b.Assets = append(b.Assets, dispatchMember{a.ID, a.Power.KW()})
		}
		return json.Marshal(b)
	}

	if len(d.Assets) == 0 {
		return nil, errRecordDeleted
	}

	a := d.Assets[0]

	return json.Marshal(dispatchEvent{
		AssetID:   a.ID,
		EventID:   d.ID,
		Issued:    issuedAt,
		Timestamp: issuedAt,
		Market:    d.Market,
		Level:     a.Power.KW(),
		From:      from,
		To:        to,
		Callback: strings.TrimSuffix(base, "/") + "/entities/asset/" +
			a.ID.String() + "/callback/" + d.ID.String(),
	})
}

// testExternalID is the external id in a test message; no asset has it.
const testExternalID = "flexd-test"

// address fills the placeholders of the endpoint's URL. A value is escaped, so that it stays
// within its part of the path or the query.
func address(template string, p *store.ClaimedPush) string {
	path, query, _ := strings.Cut(template, "?")
	externalID := p.ExternalID
	if p.Kind == store.TestPush {
		externalID = testExternalID
	}

	fill := func(s string, escape func(string) string) string {
		return strings.NewReplacer(
			"{asset_id}",
			escape(p.AssetID.String()),
			"{external_id}",
			escape(externalID),
			"{site_id}",
			escape(p.SiteID.String()),
		).Replace(s)
	}

	out := fill(path, escapePath)
	if query != "" {
		out += "?" + fill(query, url.QueryEscape)
	}

	return out
}

// escapePath escapes a segment of a path. It escapes "." and ".." too, which would change the
// path.
func escapePath(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// header returns the header fields of an attempt at the instant. The endpoint's own fields
// cannot have the scheme's names (see checkHeader).
func header(
	e *flex.Endpoint,
	keys [][]byte,
	p *store.ClaimedPush,
	body []byte,
	at time.Time,
) map[string]string {
	h := make(map[string]string, len(e.Headers)+8)
	for _, f := range e.Headers {
		h[f.Name] = f.Value.Reveal()
	}

	id := p.EventID.String()
	h["Content-Type"] = "application/json"
	h["Webhook-Id"] = id
	h["Webhook-Timestamp"] = strconv.FormatInt(at.Unix(), 10)
	h["Webhook-Signature"] = egress.Signature(keys, id, at, body)
	h["Flexd-Kind"] = string(p.Kind)

	if p.Kind == store.SchedulePush {
		h["Flexd-Asset-Id"] = p.AssetID.String()
		h["Flexd-Generation"] = strconv.FormatInt(p.Generation, 10)
	}

	return h
}

// keysOf returns the keys that sign for the endpoint at the instant.
func keysOf(e *flex.Endpoint, at time.Time) ([][]byte, error) {
	secrets := []flex.Secret{e.Secret}
	if at.Before(e.OldUntil) {
		secrets = append(secrets, e.OldSecret)
	}

	for _, f := range e.Former {
		if at.Before(f.Until) {
			secrets = append(secrets, f.Secret)
		}
	}

	var keys [][]byte
	for _, s := range secrets {
		key, err := egress.SecretKey(s)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}

	return keys, nil
}
