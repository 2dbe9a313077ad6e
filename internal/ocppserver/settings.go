package ocppserver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The configuration keys that control which meter values a charger sends.
const (
	keyAlignedInterval = "ClockAlignedDataInterval"
	keyAlignedData     = "MeterValuesAlignedData"
	keySampleInterval  = "MeterValueSampleInterval"
	keySampledData     = "MeterValuesSampledData"
)

const (
	// alignedInterval and sampleInterval are the requested intervals of meter values, in s.
	alignedInterval = 900
	sampleInterval  = 300
	// settingEvery is the least time between two writes of one setting. Some chargers restart
	// on each write, and some forget what was written.
	settingEvery = 24 * time.Hour
	measurand    = "Energy.Active.Import.Register"
)

// settings is the known state of a charger's meter settings.
type settings struct {
	Written map[string]time.Time `json:"written,omitempty"` // by key
	// it has no TriggerMessage
	NoTrigger bool `json:"-"`

	checked bool // since it booted
}

// setMeter has the charger send meter values at the quarter hours, or if it does not support
// that, at an interval within transactions. It reads the settings first and writes only those
// that differ, once after each boot.
func (c *charger) setMeter(
	ctx context.Context,
	l *link,
	conf configuration,
) error {
	c.mu.Lock()
	wasChecked := c.settings.checked
	c.mu.Unlock()

	if wasChecked {
		return nil
	}

	aligned, err := c.setAll(ctx, l, conf, keyAlignedInterval, keyAlignedData)
	if err == nil && !aligned {
		_, err = c.setAll(ctx, l, conf, keySampleInterval, keySampledData)
	}
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings.checked = true

	return nil
}

// setAll sets an interval and its measurands, and reports whether the charger has both as
// required.
func (c *charger) setAll(
	ctx context.Context,
	l *link,
	conf configuration,
	keys ...string,
) (bool, error) {
	for _, key := range keys {
		ok, err := c.setOne(ctx, l, conf, key)
		if err != nil || !ok {
			return false, err
		}
	}

	return true, nil
}

func (c *charger) setOne(
	ctx context.Context,
	l *link,
	conf configuration,
	key string,
) (bool, error) {
	value, readOnly, known := conf.find(key)
	if known && alreadySet(key, value) {
		return true, nil
	}

	if readOnly || slices.Contains(conf.Unknown, key) || !c.maySet(key) {
		c.b.Log.Info(
			"a charger does not have a setting",
			"charger",
			c.id,
			"key",
			key,
			"value",
			value,
		)

		return false, nil
	}

	var s statusAnswer
	err := l.call(
		ctx,
		"ChangeConfiguration",
		changeConfiguration{key, target(key, value)},
		&s,
	)
	c.ifLate(err, func(_ context.Context, answer func(out any) error) error {
		var s statusAnswer
		if answer(&s) == nil && s.changed() {
			c.up.noteChange(key, value)
		}

		return nil
	})

	if errors.Is(err, errLinkLost) {
		return false, errRetry
	}

	isSet := err == nil && s.changed()
	if !isSet {
		c.b.Log.Warn(
			"a charger does not take a setting",
			"charger",
			c.id,
			"key",
			key,
			"err",
			err,
			"status",
			s.Status,
		)
	}

	if isSet {
		c.up.noteChange(key, value)
	}

	return isSet, nil
}

// changed reports whether an answer confirms a change of a setting.
func (s statusAnswer) changed() bool {
	return s.Status == accepted || s.Status == "RebootRequired"
}

// maySet reports whether a setting may be written again. If so, it records the write.
func (c *charger) maySet(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := c.b.Now()
	if now.Sub(c.settings.Written[key]) < settingEvery {
		return false
	}
	if c.settings.Written == nil {
		c.settings.Written = map[string]time.Time{}
	}

	c.settings.Written[key] = now

	return true
}

// find returns a key's value in a configuration. Chargers differ in the case of their keys.
func (conf configuration) find(key string) (value string, readOnly, known bool) {
	for _, k := range conf.Known {
		if strings.EqualFold(k.Key, key) {
			return k.Value, k.ReadOnly, true
		}
	}

	return "", false, false
}

// alreadySet reports whether a setting has the required value.
func alreadySet(key, value string) bool {
	value = strings.TrimSpace(value)
	if key == keyAlignedData || key == keySampledData {
		return strings.Contains(value, measurand)
	}

	n, err := strconv.Atoi(value)
	if key == keySampleInterval {
		return err == nil && n > 0 && n <= sampleInterval
	}

	return err == nil && n > 0 && n <= 2*alignedInterval &&
		2*alignedInterval%n == 0
}

// target returns the new value of a setting. Measurands that are already sent stay in it.
func target(key, value string) string {
	switch key {
	case keyAlignedInterval:
		return strconv.Itoa(alignedInterval)
	case keySampleInterval:
		return strconv.Itoa(sampleInterval)
	}

	if others := strings.TrimSpace(value); others != "" {
		return others + "," + measurand
	}

	return measurand
}
