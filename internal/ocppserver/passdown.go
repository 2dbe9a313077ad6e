package ocppserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// readOnlyMessages are the platform's calls, of OCPP 1.6 and 2.0.1, that change nothing on a charger.
var readOnlyMessages = []string{
	"GetBaseReport",
	"GetChargingProfiles",
	"GetCompositeSchedule",
	"GetConfiguration",
	"GetInstalledCertificateIds",
	"GetLocalListVersion",
	"GetReport",
	"GetTransactionStatus",
	"GetVariables",
	"TriggerMessage",
}

// meterKeys are the charger settings that the bridge must control.
var meterKeys = []string{
	keyAlignedInterval,
	keyAlignedData,
	keySampleInterval,
	keySampledData,
}

const (
	codeInternal = "InternalError"
	codeSecurity = "SecurityError"
)

// serve answers a call from the platform.
func (u *upstream) serve(
	l *link,
	id json.RawMessage,
	action string,
	payload json.RawMessage,
) {
	perform := u.perform
	if ofStation(l.version) {
		perform = u.performStation
	}

	var result any
	err := u.may(action, l.version)
	if err == nil {
		result, err = perform(u.c.b.ctx, action, payload)
	}

	callErr := (*callError)(nil)
	if err != nil && !errors.As(err, &callErr) {
		err = &callError{codeInternal, err.Error()}
	}

	if err := l.reply(u.c.b.ctx, id, result, err); err != nil {
		u.c.b.Log.Debug(
			"a charger's platform was gone before its answer",
			"charger",
			u.c.id,
			"err",
			err,
		)
	}
}

// perform carries out a call of the platform in OCPP 1.6, so that it does not conflict with flexd's
// own control.
func (u *upstream) perform(
	ctx context.Context,
	action string,
	payload json.RawMessage,
) (any, error) {
	payload = within(&u.c.mu, func() json.RawMessage { return u.inward(payload) })

	switch action {
	case "SetChargingProfile":
		return u.setProfile(ctx, payload)
	case "ClearChargingProfile":
		return u.clearProfile(ctx, payload)
	case "ChangeConfiguration":
		return u.change(ctx, payload)
	case "GetConfiguration":
		return u.configuration(ctx, payload)
	}

	return u.pass(ctx, action, payload)
}

// may returns the error if the platform may not make a call in the charger's version of OCPP.
func (u *upstream) may(action, version string) error {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if u.readOnly && !slices.Contains(readOnlyMessages, action) {
		return &callError{
			codeSecurity,
			"this charger takes no commands of the platform",
		}
	}
	if cmp.Or(u.version, subprotocol) != cmp.Or(version, subprotocol) {
		return &callError{codeInternal, "the charger speaks another version by now"}
	}

	return nil
}

// pass forwards a call of the platform to the charger.
func (u *upstream) pass(
	ctx context.Context,
	action string,
	payload any,
) (json.RawMessage, error) {
	u.c.mu.Lock()
	l := u.c.link
	u.c.mu.Unlock()

	if l == nil {
		return nil, &callError{codeInternal, "the charger is not connected"}
	}

	var out json.RawMessage
	err := l.call(ctx, action, payload, &out)
	if late, ok := errors.AsType[*lateReply](err); ok {
		err = late.wait(ctx, l, &out)
	}

	return out, err
}

// change writes a setting for the platform. One that the bridge needs is written so that it serves
// both; the platform later reads the value that it wrote.
func (u *upstream) change(
	ctx context.Context,
	payload json.RawMessage,
) (any, error) {
	var m changeConfiguration
	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, &callError{codeFormation, err.Error()}
	}

	key := ownKey(m.Key)
	if key == "" {
		return u.pass(ctx, "ChangeConfiguration", payload)
	}

	written := m
	if !alreadySet(key, m.Value) {
		written.Value = target(key, m.Value)
	}

	out, err := u.pass(ctx, "ChangeConfiguration", written)
	var s statusAnswer
	if err == nil && json.Unmarshal(out, &s) == nil && s.Status == accepted {
		u.believe(key, m.Value)
	}

	return out, err
}

// ownKey returns the bridge's spelling of a setting that the bridge needs; empty for others.
func ownKey(key string) string {
	i := slices.IndexFunc(meterKeys, func(k string) bool {
		return strings.EqualFold(k, key)
	})
	if i < 0 {
		return ""
	}

	return meterKeys[i]
}

// believe records the value that the platform reads for a setting.
func (u *upstream) believe(key, value string) {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	u.values[key] = value
	u.c.saveState()
}

// noteChange records a setting's value before the bridge changed it. A value that the platform has
// written since has priority.
func (u *upstream) noteChange(key, before string) {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if _, known := u.values[key]; !known {
		u.values[key] = before
		u.c.saveState()
	}
}

// configuration returns the charger's settings to the platform. Settings that the bridge changed
// have their earlier values, and the stack levels are without the bridge's own.
func (u *upstream) configuration(
	ctx context.Context,
	payload json.RawMessage,
) (any, error) {
	out, err := u.pass(ctx, "GetConfiguration", payload)
	var conf struct {
		Known   []map[string]any `json:"configurationKey"`
		Unknown []string         `json:"unknownKey,omitempty"`
	}

	if err != nil || json.Unmarshal(out, &conf) != nil {
		return out, err
	}

	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	for _, k := range conf.Known {
		key, _ := k["key"].(string)
		value, _ := k["value"].(string)
		if before, changed := u.values[ownKey(key)]; changed {
			k["value"] = before
		}

		top, err := strconv.Atoi(value)
		if strings.EqualFold(key, keyStackLevel) && err == nil && top > 0 {
			k["value"] = strconv.Itoa(top - 1)
		}
	}

	if conf.Known == nil {
		conf.Known = []map[string]any{}
	}

	return conf, nil
}
