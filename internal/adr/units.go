package adr

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// unitsOf are units, by the payload that is in them.
type unitsOf map[string]string

// The kinds of descriptor that a program has.
const (
	eventDescriptorType  = "EVENT_PAYLOAD_DESCRIPTOR"
	reportDescriptorType = "REPORT_PAYLOAD_DESCRIPTOR"
)

// usualUnits are the units that a program's descriptors name: those of its events' payloads of
// which the event names none. A program that is being deleted has none.
func usualUnits(
	ctx context.Context,
	tx *store.Tx,
	program flex.ADRObjectID,
) (unitsOf, error) {
	kept, err := tx.ADRObjects(ctx, flex.ADRSearch{
		Kind: flex.ADRProgram,
		ID:   program,
	})
	if err != nil || len(kept) == 0 {
		return nil, err
	}

	var d struct {
		Descriptors []struct {
			Object string `json:"objectType"`
			Type   string `json:"payloadType"`
			Units  string `json:"units"`
		} `json:"payloadDescriptors"`
	}
	if err := json.Unmarshal([]byte(kept[0].Document), &d); err != nil {
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

// ordersOfAll are what some events of a bound program ask of the fleet.
func ordersOfAll(
	ctx context.Context,
	tx *store.Tx,
	b *flex.ADRBinding,
	events []flex.ADRObject,
) ([]Order, error) {
	usual, err := usualUnits(ctx, tx, b.Program)
	if err != nil {
		return nil, err
	}

	var wanted []Order
	for i := range events {
		orders, err := ordersOf(b, &events[i], usual)
		if err != nil {
			return nil, err
		}

		wanted = append(wanted, orders...)
	}

	return wanted, nil
}

// descriptors are what the server's program says of its events' powers, as far as it names
// units; unknown if the server does not have this VEN read it. One that cannot be read now is
// Unavailable. What it says of other payloads does not matter here.
func (r *remote) descriptors(ctx context.Context) (found []any, known bool, err error) {
	var program struct {
		Descriptors []map[string]any `json:"payloadDescriptors"`
	}

	path := "/programs/" + url.PathEscape(r.of.Remote)
	status, err := r.ask(ctx, "GET", path, nil, &program, 200)
	if isRefusal(status) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}

	for _, given := range program.Descriptors {
		power, _ := given["payloadType"].(string)
		unnamed := given["units"] == nil || given["units"] == ""
		if given["objectType"] == reportDescriptorType || unnamed || !powerPayloads[power] {
			continue
		}

		one, err := eventDescriptor.take("payloadDescriptors", map[string]any{
			"objectType":  eventDescriptorType,
			"payloadType": power,
			"units":       given["units"],
		})
		if err != nil {
			return nil, false, flex.Fail(flex.Unavailable, "GET %s: %v", path, err)
		}
		found = append(found, one)
	}

	return found, true, nil
}

// isRefusal reports whether a server answers a request so each time, and not for now alone.
func isRefusal(status int) bool {
	forNow := status == 408 || status == 429
	return status/100 == 4 && !forNow
}

// nameUnits reports whether a server's events name the units of all their powers: then they
// can be read without their program. What cannot be read at all names none that counts.
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

// storeDescriptors keeps what the server's program says of its events' payloads, if that
// changed: its events are looked at again then.
func (m *mirroring) storeDescriptors(ctx context.Context, found []any) error {
	was, err := m.tx.ADRObject(ctx, flex.ADRSearch{
		Kind: flex.ADRProgram,
		ID:   m.of.Program,
	})
	if err != nil {
		return err
	}

	before, err := objectOf(&was)
	if err != nil {
		return err
	}

	document := maps.Clone(before.Fields)
	delete(document, "payloadDescriptors")
	if len(found) > 0 {
		document["payloadDescriptors"] = found
	}

	text, err := json.Marshal(document)
	if err != nil || string(text) == was.Document {
		return err
	}

	o, err := m.save(
		ctx,
		m.tx,
		flexdOf(m.of.Org),
		&was,
		flex.ADRProgram,
		document,
	)
	if err != nil {
		return err
	}

	m.changed = true

	return m.notify(ctx, m.tx, &o, opUpdate)
}
