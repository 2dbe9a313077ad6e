package ocppserver_test

import (
	"fmt"
	"testing"

	"flexd/internal/ocppserver"
)

// TestSettings_ReadBeforeWritten: only what does not suit is written, once, however often the
// charger restarts because of it.
func TestSettings_ReadBeforeWritten(t *testing.T) {
	all := []string{
		"ClockAlignedDataInterval=900", "MeterValuesAlignedData=Energy.Active.Import.Register",
		"MeterValueSampleInterval=300", "MeterValuesSampledData=Energy.Active.Import.Register",
	}

	for name, x := range map[string]struct {
		conf map[string]string
		want []string
	}{
		"it keeps nothing":    {map[string]string{"forgets": "=1"}, all},
		"nothing is right":    {map[string]string{"ClockAlignedDataInterval": "0", "MeterValuesAlignedData": ""}, all[:2]},
		"all is right":        {map[string]string{"ClockAlignedDataInterval": "300", "MeterValuesAlignedData": "Voltage,Energy.Active.Import.Register"}, nil},
		"others stay":         {map[string]string{"ClockAlignedDataInterval": "900", "MeterValuesAlignedData": "Voltage"}, []string{"MeterValuesAlignedData=Voltage,Energy.Active.Import.Register"}},
		"aligned is refused":  {map[string]string{"ClockAlignedDataInterval": "!0", "MeterValueSampleInterval": "0", "MeterValuesSampledData": "Energy.Active.Import.Register"}, []string{"ClockAlignedDataInterval=900", "MeterValueSampleInterval=300"}},
		"aligned is readonly": {map[string]string{"ClockAlignedDataInterval": "=0", "MeterValueSampleInterval": "60", "MeterValuesSampledData": "Energy.Active.Import.Register"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, ocppserver.Settings{})
			c := newSim(t, s.url, "CP1", s.now)
			c.settings = x.conf
			c.forgets = x.conf["forgets"] != ""

			for range 20 { // a charger that restarts on each setting does no more than this
				c.boot()
				c.say("Preparing")
				c.given()
				c.hangUp()
			}

			c.mu.Lock()
			defer c.mu.Unlock()
			if got := fmt.Sprint(c.written); got != fmt.Sprint(x.want) {
				t.Errorf("written %v, want %v", got, x.want)
			}
		})
	}
}
