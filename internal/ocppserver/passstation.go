package ocppserver

import (
	"context"
	"encoding/json"
	"strconv"
)

// performStation carries out a call of the platform in OCPP 2.0.1, so that it does not conflict with
// flexd's own control.
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

// platformStationProfile has the parts of an OCPP 2.0.1 charging profile that bound a plan.
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

// plain converts the profile to OCPP 1.6. If a car may choose among several schedules, the first
// one is used.
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

// setStationProfile is setProfile for OCPP 2.0.1. Members of the profile that the bridge does not
// change are forwarded as the platform wrote them.
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
	profile := platformProfile{m.EVSE, u.c.b.Now(), read.Profile.plain()}
	level := u.levelBelow(profile.Profile.StackLevel)
	id := u.ownID(profile.Profile.ID)
	u.c.mu.Unlock()

	if level > 0 {
		m.Profile["stackLevel"] = json.RawMessage(strconv.Itoa(level))
		m.Profile["id"] = json.RawMessage(strconv.Itoa(id))

		out, err := u.pass(ctx, "SetChargingProfile", m)
		if err != nil || !isAccepted(out) {
			return out, err
		}
	}

	u.limit(profile)

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

// variableItem is one variable of a list, with all its members as sent.
type variableItem map[string]json.RawMessage

// key returns the OCPP 1.6 setting that corresponds to a variable's actual value; empty if none does.
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

// text returns a member of type string; empty if it is another type.
func (v variableItem) text(name string) string {
	var text string
	_ = json.Unmarshal(v[name], &text) // other types leave the text empty

	return text
}

// setText writes a member of type string.
func (v variableItem) setText(name, text string) {
	v[name], _ = json.Marshal(text) // strings always encode
}

// setVariables is change for OCPP 2.0.1: variables that the bridge needs are written so that they
// serve both.
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
