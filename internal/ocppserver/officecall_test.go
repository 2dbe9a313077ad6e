package ocppserver

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/lorenzodonini/ocpp-go/ocpp"
	certificates16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/certificates"
	core16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/core"
	trigger16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/extendedtriggermessage"
	firmware16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/firmware"
	local16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/localauth"
	logging16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/logging"
	remote16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/remotetrigger"
	reservation16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/reservation"
	securefirmware16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/securefirmware"
	security16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/security"
	smart16 "github.com/lorenzodonini/ocpp-go/ocpp1.6/smartcharging"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/authorization"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/availability"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/data"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/diagnostics"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/firmware"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/iso15118"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/localauth"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/provisioning"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/remotecontrol"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/reservation"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/security"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/smartcharging"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/transactions"
	"github.com/lorenzodonini/ocpp-go/ocppj"
)

// TestDialect_Examples: every example is valid by a library that nobody here wrote, has the members
// of the standard alone, and its call stands in docs/ocpp.md.
func TestDialect_Examples(t *testing.T) {
	page, err := os.ReadFile("../../docs/ocpp.md")
	if err != nil {
		t.Fatal(err)
	}

	for _, x := range []struct {
		dialect  dialect
		profiles []*ocpp.Profile
	}{
		{ocpp16, []*ocpp.Profile{core16.Profile, certificates16.Profile, securefirmware16.Profile, security16.Profile, trigger16.Profile, firmware16.Profile, local16.Profile, logging16.Profile,
			remote16.Profile, reservation16.Profile, smart16.Profile}},
		{ocpp201, []*ocpp.Profile{authorization.Profile, availability.Profile, data.Profile, diagnostics.Profile, firmware.Profile,
			iso15118.Profile, security.Profile, localauth.Profile, provisioning.Profile, remotecontrol.Profile, reservation.Profile, smartcharging.Profile, transactions.Profile}},
	} {
		c := &charger{link: &link{}, connectors: map[int]*connector{2: {number: 2, tx: 7}}}
		if x.dialect.version == "2.0.1" {
			c.link.station = &station{}
			c.connectors[2].txName = `a "quoted" one`
		}

		for _, call := range c.examples(2) {
			i := slices.IndexFunc(x.profiles, func(p *ocpp.Profile) bool { return p.GetFeature(call.Action) != nil })
			if i < 0 {
				t.Errorf("OCPP %s has no call %s", x.dialect.version, call.Action)
				continue
			}

			request := reflect.New(x.profiles[i].GetFeature(call.Action).GetRequestType())
			d := json.NewDecoder(bytes.NewReader(call.Example))
			d.DisallowUnknownFields()
			err := d.Decode(request.Interface())
			if err == nil {
				err = ocppj.Validate.Struct(request.Interface())
			}
			if err != nil {
				t.Errorf("OCPP %s %s %s: %v", x.dialect.version, call.Action, call.Example, err)
			}

			if !bytes.Contains(page, []byte(call.Action)) {
				t.Errorf("docs/ocpp.md has no %s", call.Action)
			}
		}
	}
}
