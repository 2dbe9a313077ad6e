package ocppserver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The configuration keys by which a charger sends its meter.
const (
	keyAlignedInterval = "ClockAlignedDataInterval"
	keyAlignedData     = "MeterValuesAlignedData"
	keySampleInterval  = "MeterValueSampleInterval"
	keySampledData     = "MeterValuesSampledData"
)

const (
	// alignedInterval and sampleInterval are how often a charger is to send its meter, in s.
	alignedInterval = 900
	sampleInterval  = 300
	// settingEvery is how often one setting is written at most: some chargers restart on it,
	// and some forget it.
	settingEvery = 24 * time.Hour
	measurand    = "Energy.Active.Import.Register"
)

// settings is what is known of how a charger sends its meter.
type settings struct {
	Written map[string]time.Time `json:"written,omitempty"` // by key
	// it has no TriggerMessage
	NoTrigger bool `json:"-"`

	checked bool // since it booted
}

// setMeter has the charger send its meter at the quarter hours, or if it does not do that, at
// an interval within transactions. What it has been set to is read first, and only what must
// change is written, once after a boot.
func (c *charger) setMeter(
	ctx context.Context,
	l *link,
	conf configuration,
) error {
	c.mu.Lock()
	checked := c.settings.checked
	c.mu.Unlock()

	if checked {
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

// setAll brings an interval and its measurands to what is wanted, and reports whether the
// charger has them so.
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
			c.up.changed(key, value)
		}

		return nil
	})

	if errors.Is(err, errLinkLost) {
		return false, errAgain
	}

	done := err == nil && s.changed()
	if !done {
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

	if done {
		c.up.changed(key, value)
	}

	return done, nil
}

// changed reports whether an answer says that a setting is changed.
func (s statusAnswer) changed() bool {
	return s.Status == accepted || s.Status == "RebootRequired"
}

// maySet reports whether a setting may be written again, and notes that it is.
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

// find returns a key's value in a configuration. Chargers spell keys in their own case.
func (conf configuration) find(key string) (value string, readOnly, known bool) {
	for _, k := range conf.Known {
		if strings.EqualFold(k.Key, key) {
			return k.Value, k.ReadOnly, true
		}
	}

	return "", false, false
}

// alreadySet reports whether a setting already does what is wanted.
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

// target is what a setting is changed to. Measurands that are sent already stay.
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
