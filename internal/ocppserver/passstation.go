package ocppserver

import (
	"context"
	"encoding/json"
	"strconv"
)

// performStation does what a platform asks of a charger in OCPP 2.0.1, beside what flexd does
// with it.
func (u *upstream) performStation(
	ctx context.Context,
	action string,
	payload json.RawMessage,
) (any, error) {
	switch action {
	case "SetChargingProfile":
		return u.setStationProfile(ctx, payload)
	case "ClearChargingProfile":
		return u.clearStationProfile(ctx, payload)
	case "SetVariables":
		return u.setVariables(ctx, payload)
	case "GetVariables":
		return u.getVariables(ctx, payload)
	}

	return u.pass(ctx, action, payload)
}

// platformStationProfile is a charging profile of OCPP 2.0.1 as far as it bounds a plan.
type platformStationProfile struct {
	ID          int               `json:"id"`
	StackLevel  int               `json:"stackLevel"`
	Purpose     string            `json:"chargingProfilePurpose"`
	Kind        string            `json:"chargingProfileKind"`
	Recurrency  string            `json:"recurrencyKind"`
	From        stamp             `json:"validFrom"`
	To          stamp             `json:"validTo"`
	Transaction string            `json:"transactionId"`
	Schedules   []stationSchedule `json:"chargingSchedule"`
}

// plain is the profile in the form of OCPP 1.6. Of several schedules, between which a car may
// choose, the first one counts.
func (p platformStationProfile) plain() detailedProfile {
	plain := detailedProfile{
		ID:         p.ID,
		StackLevel: p.StackLevel,
		Purpose:    p.Purpose,
		Kind:       p.Kind,
		Recurrency: p.Recurrency,
		From:       p.From,
		To:         p.To,
	}

	if p.Transaction != "" {
		plain.Transaction = numberOf(p.Transaction)
	}
	if len(p.Schedules) > 0 {
		plain.Schedule = p.Schedules[0].plain()
	}

	return plain
}

// setStationProfile is setProfile for OCPP 2.0.1. What is not changed in the profile goes
// through as the platform wrote it.
func (u *upstream) setStationProfile(
	ctx context.Context,
	payload json.RawMessage,
) (any, error) {
	var m struct {
		EVSE    int                        `json:"evseId"`
		Profile map[string]json.RawMessage `json:"chargingProfile"`
	}
	var read struct {
		Profile platformStationProfile `json:"chargingProfile"`
	}

	if err := unmarshalBoth(payload, &m, &read); err != nil {
		return nil, &callError{codeFormation, err.Error()}
	}

	purpose := read.Profile.Purpose
	if purpose != purposeTx && purpose != purposeTxDefault {
		return u.pass(ctx, "SetChargingProfile", payload)
	}
	if err := u.awaitLevels(ctx); err != nil {
		return nil, err
	}

	u.c.mu.Lock()
	kept := platformProfile{m.EVSE, u.c.b.Now(), read.Profile.plain()}
	level := u.levelBelow(kept.Profile.StackLevel)
	id := u.ownID(kept.Profile.ID)
	u.c.mu.Unlock()

	if level > 0 {
		m.Profile["stackLevel"] = json.RawMessage(strconv.Itoa(level))
		m.Profile["id"] = json.RawMessage(strconv.Itoa(id))

		out, err := u.pass(ctx, "SetChargingProfile", m)
		if err != nil || !isAccepted(out) {
			return out, err
		}
	}

	u.limit(kept)

	return statusAnswer{accepted}, nil
}

func unmarshalBoth(payload json.RawMessage, a, b any) error {
	if err := json.Unmarshal(payload, a); err != nil {
		return err
	}

	return json.Unmarshal(payload, b)
}

// clearStationProfile is clearProfile for OCPP 2.0.1.
func (u *upstream) clearStationProfile(
	ctx context.Context,
	payload json.RawMessage,
) (any, error) {
	var m struct {
		ID       *int `json:"chargingProfileId"`
		Criteria struct {
			EVSE    *int   `json:"evseId"`
			Purpose string `json:"chargingProfilePurpose"`
			Level   *int   `json:"stackLevel"`
		} `json:"chargingProfileCriteria"`
	}

	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, &callError{codeFormation, err.Error()}
	}

	return u.clear(ctx, payload, profileFilter{
		ID:        m.ID,
		Connector: m.Criteria.EVSE,
		Purpose:   m.Criteria.Purpose,
		Level:     m.Criteria.Level,
	})
}

// variableItem is one variable of a list, with all that its sender said of it.
type variableItem map[string]json.RawMessage

// key is the setting of OCPP 1.6 that a variable's actual value stands for, empty if there is none.
func (v variableItem) key() string {
	var own variable
	if json.Unmarshal(v["component"], &own.Component) != nil ||
		json.Unmarshal(v["variable"], &own.Variable) != nil {
		return ""
	}
	if kind := v.text("attributeType"); kind != "" && kind != "Actual" {
		return ""
	}

	for key, other := range stationVariables {
		if own.same(other) {
			return key
		}
	}

	return ""
}

// text is a member that is a text, empty if it is none.
func (v variableItem) text(name string) string {
	var text string
	_ = json.Unmarshal(v[name], &text) // what is no text says nothing

	return text
}

// setText writes a member that is a text.
func (v variableItem) setText(name, text string) {
	v[name], _ = json.Marshal(text) // a text never fails
}

// setVariables is change for OCPP 2.0.1: variables that the bridge needs are written so that both
// have what they want of them.
func (u *upstream) setVariables(
	ctx context.Context,
	payload json.RawMessage,
) (any, error) {
	var m struct {
		Data []variableItem `json:"setVariableData"`
	}

	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, &callError{codeFormation, err.Error()}
	}

	asked := map[string]string{}
	for _, v := range m.Data {
		key := ownKey(v.key())
		if key == "" {
			continue
		}

		value := v.text("attributeValue")
		asked[key] = value
		if !alreadySet(key, value) {
			v.setText("attributeValue", target(key, value))
		}
	}

	out, err := u.pass(ctx, "SetVariables", m)
	var answer struct {
		Result []variableItem `json:"setVariableResult"`
	}

	if err != nil || json.Unmarshal(out, &answer) != nil {
		return out, err
	}

	for _, v := range answer.Result {
		value, ours := asked[v.key()]
		if ours && v.text("attributeStatus") == accepted {
			u.believe(v.key(), value)
		}
	}

	return out, nil
}

// getVariables is configuration for OCPP 2.0.1.
func (u *upstream) getVariables(
	ctx context.Context,
	payload json.RawMessage,
) (any, error) {
	out, err := u.pass(ctx, "GetVariables", payload)
	var answer struct {
		Result []variableItem `json:"getVariableResult"`
	}

	if err != nil || json.Unmarshal(out, &answer) != nil {
		return out, err
	}

	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	for _, v := range answer.Result {
		if v.text("attributeStatus") != accepted {
			continue
		}

		key := v.key()
		if before, changed := u.values[key]; changed && key != "" {
			v.setText("attributeValue", before)
		}

		top, err := strconv.Atoi(v.text("attributeValue"))
		if key == keyStackLevel && err == nil && top > 0 {
			v.setText("attributeValue", strconv.Itoa(top-1))
		}
	}

	return answer, nil
}
