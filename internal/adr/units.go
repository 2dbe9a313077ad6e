package adr

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// unitsOf has units by the type of the payload.
type unitsOf map[string]string

// The kinds of descriptor that a program has.
const (
	eventDescriptorType  = "EVENT_PAYLOAD_DESCRIPTOR"
	reportDescriptorType = "REPORT_PAYLOAD_DESCRIPTOR"
)

// usualUnits returns the units in a program's descriptors. They apply to payloads for which an
// event names no unit. A program that is being deleted has none.
func usualUnits(
	ctx context.Context,
	tx *store.Tx,
	program flex.ADRObjectID,
) (unitsOf, error) {
	stored, err := tx.ADRObjects(ctx, flex.ADRSearch{
		Kind: flex.ADRProgram,
		ID:   program,
	})
	if err != nil || len(stored) == 0 {
		return nil, err
	}

	var d struct {
		Descriptors []struct {
			Object string `json:"objectType"`
			Type   string `json:"payloadType"`
			Units  string `json:"units"`
		} `json:"payloadDescriptors"`
	}
	if err := json.Unmarshal([]byte(stored[0].Document), &d); err != nil {
		return nil, err
	}

	usual := unitsOf{}
	for _, one := range d.Descriptors {
		if one.Object == eventDescriptorType && usual[one.Type] == "" {
			usual[one.Type] = one.Units
		}
	}

	return usual, nil
}

// ordersOfEvents returns the orders of some events of a bound program.
func ordersOfEvents(
	ctx context.Context,
	tx *store.Tx,
	b *flex.ADRBinding,
	events []flex.ADRObject,
) ([]Order, error) {
	usual, err := usualUnits(ctx, tx, b.Program)
	if err != nil {
		return nil, err
	}

	var all []Order
	for i := range events {
		orders, err := ordersOf(b, &events[i], usual)
		if err != nil {
			return nil, err
		}

		all = append(all, orders...)
	}

	return all, nil
}

// descriptors returns the server's descriptors of event powers that name units. They are
// unknown if the server does not let this VEN read the program. If the program cannot be read
// now, the error is Unavailable. Descriptors of other payloads are ignored.
func (r *remote) descriptors(ctx context.Context) (found []any, known bool, err error) {
	var program struct {
		Descriptors []map[string]any `json:"payloadDescriptors"`
	}

	path := "/programs/" + url.PathEscape(r.upstream.Remote)
	status, err := r.do(ctx, "GET", path, nil, &program, 200)
	if isRefusal(status) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}

	for _, descriptor := range program.Descriptors {
		power, _ := descriptor["payloadType"].(string)
		noUnits := descriptor["units"] == nil || descriptor["units"] == ""
		if descriptor["objectType"] == reportDescriptorType || noUnits || !powerPayloads[power] {
			continue
		}

		one, err := eventDescriptor.normalise("payloadDescriptors", map[string]any{
			"objectType":  eventDescriptorType,
			"payloadType": power,
			"units":       descriptor["units"],
		})
		if err != nil {
			return nil, false, flex.Fail(flex.Unavailable, "GET %s: %v", path, err)
		}
		found = append(found, one)
	}

	return found, true, nil
}

// isRefusal reports whether a status is a permanent refusal of a request, and not a temporary
// one.
func isRefusal(status int) bool {
	forNow := status == 408 || status == 429
	return status/100 == 4 && !forNow
}

// nameUnits reports whether a server's events name the units of all their powers. Then they
// can be read without the program. An event that cannot be parsed counts as naming them.
func nameUnits(found map[string]map[string]any) bool {
	for _, fields := range found {
		e, err := readEvent(fields)
		if err != nil {
			continue
		}

		for _, i := range e.Intervals {
			for _, p := range i.Payloads {
				if powerPayloads[p.Type] && e.units(p.Type) == "" {
					return false
				}
			}
		}
	}

	return true
}

// storeDescriptors stores the descriptors of the server's program if they changed. A change
// causes its events to be read again.
func (m *mirroring) storeDescriptors(ctx context.Context, found []any) error {
	previous, err := m.tx.ADRObject(ctx, flex.ADRSearch{
		Kind: flex.ADRProgram,
		ID:   m.upstream.Program,
	})
	if err != nil {
		return err
	}

	before, err := objectOf(&previous)
	if err != nil {
		return err
	}

	document := maps.Clone(before.Fields)
	delete(document, "payloadDescriptors")
	if len(found) > 0 {
		document["payloadDescriptors"] = found
	}

	text, err := json.Marshal(document)
	if err != nil || string(text) == previous.Document {
		return err
	}

	o, err := m.save(
		ctx,
		m.tx,
		flexdOf(m.upstream.Org),
		&previous,
		flex.ADRProgram,
		document,
	)
	if err != nil {
		return err
	}

	m.changed = true

	return m.notify(ctx, m.tx, &o, opUpdate)
}
