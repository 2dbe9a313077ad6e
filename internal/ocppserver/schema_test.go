package ocppserver_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/lorenzodonini/ocpp-go/ocpp"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/certificates"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/core"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/firmware"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/logging"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/remotetrigger"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/security"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/smartcharging"
	"github.com/lorenzodonini/ocpp-go/ocppj"
)

// library16 is OCPP 1.6 by a library that nobody of this project wrote: the simulated chargers
// hold what the bridge sends of its own, and all that it answers, against it.
var library16 = []*ocpp.Profile{
	core.Profile, smartcharging.Profile, remotetrigger.Profile, firmware.Profile, security.Profile, certificates.Profile, logging.Profile,
}

// ownCalls are the calls that the bridge makes by itself. Others are people's, who may write
// what they like.
var ownCalls = []string{
	"CertificateSigned", "ChangeConfiguration", "ClearChargingProfile", "GetCompositeSchedule", "GetConfiguration", "SetChargingProfile", "TriggerMessage",
}

// wrong16 returns what is wrong with a call's payload, or with its answer's, by the library: a
// member that the standard lacks, or a value that it refuses.
func wrong16(action string, payload []byte, answer bool) error {
	i := slices.IndexFunc(library16, func(p *ocpp.Profile) bool { return p.GetFeature(action) != nil })
	if i < 0 || !answer && !slices.Contains(ownCalls, action) {
		return nil
	}

	of := library16[i].GetFeature(action).GetRequestType()
	if answer {
		of = library16[i].GetFeature(action).GetResponseType()
	}

	message := reflect.New(of)
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(message.Interface()); err != nil {
		return err
	}

	return ocppj.Validate.Struct(message.Interface())
}
