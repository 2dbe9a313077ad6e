package api

import (
	"slices"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// endpointName reads the name of an endpoint from the path.
func endpointName(r *request) flex.EndpointName {
	return flex.EndpointName(path[wire.EndpointPath](r).Name)
}

// endpoint answers GET /endpoints/{name}.
func (s *Server) endpoint(r *request) (answer, error) {
	name := endpointName(r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	e, err := s.Push.Endpoint(r.Context(), r.who.Org, name)

	return ok(endpointResponse(e)), err
}

// setEndpoint answers PUT /endpoints/{name}. A secret is shown when it was made here.
func (s *Server) setEndpoint(r *request) (answer, error) {
	name, in := endpointName(r), body[wire.EndpointRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	set := delivery.Settings{
		URL:         in.URL,
		Secret:      flex.Secret(in.Secret),
		Bare:        in.Bare,
		Nulls:       in.Nulls,
		Batch:       in.Batch,
		Discharge:   new(dischargeForm(in.Discharge)),
		Enabled:     in.Enabled,
		Rate:        in.Rate,
		Concurrency: in.Concurrency,
	}

	if in.Headers != nil {
		set.Headers = make([]flex.EndpointHeader, len(in.Headers))
		for i, h := range in.Headers {
			set.Headers[i] = flex.EndpointHeader{
				Name:  h.Name,
				Value: flex.Secret(h.Value),
			}
		}
	}

	e, made, err := s.Push.SetEndpoint(r.Context(), r.who.Org, name, set)
	out := endpointResponse(e)

	if made {
		out.Secret = e.Secret.Reveal()
	}

	return ok(out), err
}

// rotateEndpoint answers POST /endpoints/{name}/rotate.
func (s *Server) rotateEndpoint(r *request) (answer, error) {
	name := endpointName(r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	e, err := s.Push.Rotate(r.Context(), r.who.Org, name)
	out := endpointResponse(e)
	out.Secret = e.Secret.Reveal()

	return ok(out), err
}

// deleteEndpoint answers DELETE /endpoints/{name}.
func (s *Server) deleteEndpoint(r *request) (answer, error) {
	name := endpointName(r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return noContent(), s.Push.DeleteEndpoint(r.Context(), r.who.Org, name)
}

// testWait is how long a test message's answer is waited for.
const testWait = 20 * time.Second

// testEndpoint answers POST /endpoints/{name}/test.
func (s *Server) testEndpoint(r *request) (answer, error) {
	name := endpointName(r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	id, err := s.Push.Test(r.Context(), r.who.Org, name)
	if err != nil {
		return answer{}, err
	}

	d, err := s.Push.Await(r.Context(), r.who.Org, id, testWait)

	return ok(wire.EndpointTestResponse{
		Accepted: d.State == flex.DeliveryAccepted,
		Delivery: deliveryDetail(d),
	}), err
}

// dischargeForm is how an endpoint takes schedules by which a car discharges, as it was sent.
func dischargeForm(sent string) flex.DischargeForm {
	if sent == "none" {
		return flex.NoDischarge
	}
	return flex.DischargeForm(sent)
}

func endpointResponse(e flex.Endpoint) wire.EndpointResponse {
	out := wire.EndpointResponse{
		ID:             e.ID,
		Name:           string(e.Name),
		URL:            e.URL,
		HeaderNames:    []string{},
		Bare:           e.Bare,
		Nulls:          e.Nulls,
		Batch:          e.Batch,
		Discharge:      string(e.Discharge),
		Enabled:        e.Enabled,
		DisabledReason: e.Reason,
		Rate:           e.Rate,
		Concurrency:    e.Concurrency,
		CreatedAt:      wire.At(e.CreatedAt),
		OldSecretUntil: wire.At(e.OldUntil),
	}

	for _, h := range e.Headers {
		out.HeaderNames = append(out.HeaderNames, h.Name)
	}

	return out
}

// deliveries answers GET /deliveries.
func (s *Server) deliveries(r *request) (answer, error) {
	q := query[wire.DeliveryListQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	ds, err := s.Push.Deliveries(r.Context(), delivery.Filter{
		Org:      r.who.Org,
		Asset:    q.AssetID,
		Kind:     q.Kind,
		State:    q.Status,
		Endpoint: q.Endpoint,
		Since:    q.Since.Time,
		Before:   q.Before,
		Limit:    q.Limit + 1,
	})
	if err != nil {
		return answer{}, err
	}

	page := wire.DeliveryResponsePage{Deliveries: []wire.DeliveryResponse{}}
	for i := range ds[:min(len(ds), q.Limit)] {
		page.Deliveries = append(page.Deliveries, deliveryResponse(&ds[i]))
	}

	if len(ds) > q.Limit {
		page.Next = ds[q.Limit-1].ID
	}

	return ok(page), nil
}

// delivery answers GET /deliveries/{id}.
func (s *Server) delivery(r *request) (answer, error) {
	p := path[wire.DeliveryPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	d, err := s.Push.Delivery(r.Context(), r.who.Org, p.ID)

	return ok(deliveryDetail(d)), err
}

// replay answers POST /deliveries/{id}/replay.
func (s *Server) replay(r *request) (answer, error) {
	p := path[wire.DeliveryPath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}
	if err := s.Push.Replay(r.Context(), r.who.Org, p.ID); err != nil {
		return answer{}, err
	}

	d, err := s.Push.Delivery(r.Context(), r.who.Org, p.ID)

	return ok(deliveryResponse(&d.Line)), err
}

func deliveryResponse(d *delivery.Line) wire.DeliveryResponse {
	out := wire.DeliveryResponse{
		ID:             d.ID,
		Kind:           d.Kind,
		AssetID:        d.AssetID,
		Endpoint:       d.Endpoint,
		Generation:     d.Generation,
		Status:         string(d.State),
		CallbackStatus: d.Callback,
		NumAttempts:    d.Tries,
		CreatedAt:      wire.At(d.QueuedAt),
	}

	if !d.NextAt.IsZero() { // a head start over others is no time at which it could have gone
		out.NextAttemptAt = wire.At(slices.MaxFunc(
			[]time.Time{d.NextAt, d.QueuedAt},
			time.Time.Compare,
		))
	}

	if d.State != flex.DeliveryPending && d.Tries > 0 {
		out.FinishedAt = wire.At(d.Last.At.Add(d.Last.Took))
	}

	return out
}

func deliveryDetail(d delivery.Detail) wire.DeliveryDetail {
	out := wire.DeliveryDetail{
		DeliveryResponse: deliveryResponse(&d.Line),
		URL:              d.URL,
		Payload:          d.Body,
		Attempts:         []wire.DeliveryAttempt{},
		Callbacks:        []wire.DeliveryCallback{},
	}

	for _, a := range d.Attempts {
		out.Attempts = append(out.Attempts, wire.DeliveryAttempt{
			At:         wire.At(a.At),
			StatusCode: a.Status,
			DurationMS: float64(a.Took.Microseconds()) / 1000,
			Error:      a.Error,
			Response:   a.Answer,
		})
	}

	for _, r := range d.Replaced {
		out.Replaced = append(out.Replaced, wire.DispatchReplaced{
			AssetID:  r.AssetID,
			FromTime: wire.At(r.From),
			ToTime:   wire.At(r.To),
		})
	}

	for _, c := range d.Callbacks {
		out.Callbacks = append(out.Callbacks, wire.DeliveryCallback{
			AssetID:    c.AssetID,
			Status:     c.Status,
			Timestamp:  wire.At(c.ReportedAt),
			ReceivedAt: wire.At(c.ReceivedAt),
		})
	}

	return out
}

// callback answers POST /entities/asset/{asset_id}/callback/{event_id}.
func (s *Server) callback(r *request) (answer, error) {
	at := path[wire.CallbackPath](r)
	q := query[wire.CallbackQuery](r)
	in := body[wire.EventResponse](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return answer{}, s.Push.Callback(r.Context(), r.who.Org, delivery.Callback{
		Asset:      at.AssetID,
		External:   q.AssetIDIsExternal,
		Event:      at.EventID,
		Status:     in.Status,
		ReportedAt: in.Timestamp.Time,
	})
}
