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

// onlyRead are the platform's calls that change nothing on a charger, of OCPP 1.6 and of 2.0.1.
var onlyRead = []string{
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

// meterKeys are the settings that the bridge needs to be its own way.
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

// serve answers a call of the platform's.
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

	refused := (*callError)(nil)
	if err != nil && !errors.As(err, &refused) {
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

// perform does what the platform asks of the charger, beside what flexd does with it.
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

// may returns why the platform may not ask something of the charger in the version that it speaks.
func (u *upstream) may(action, version string) error {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if u.readOnly && !slices.Contains(onlyRead, action) {
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

// pass asks the charger what the platform asks.
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
	if late, ok := errors.AsType[*unanswered](err); ok {
		err = late.wait(ctx, l, &out)
	}

	return out, err
}

// change takes a setting. One that the bridge needs is written so that both have what they
// want of it, and shown to the platform as the platform wrote it.
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

// ownKey is the key of a setting that the bridge needs, as it spells it; empty for others.
func ownKey(key string) string {
	i := slices.IndexFunc(meterKeys, func(k string) bool {
		return strings.EqualFold(k, key)
	})
	if i < 0 {
		return ""
	}

	return meterKeys[i]
}

// believe notes what the platform believes a setting to be.
func (u *upstream) believe(key, value string) {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	u.values[key] = value
	u.c.keep()
}

// changed notes what a setting was before the bridge changed it. What the platform has written
// meanwhile stays.
func (u *upstream) changed(key, before string) {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	if _, known := u.values[key]; !known {
		u.values[key] = before
		u.c.keep()
	}
}

// configuration shows the platform the charger's settings, those that the bridge changed as
// they were before, and the stack levels without the bridge's own.
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
