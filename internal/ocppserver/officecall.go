package ocppserver

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"flexd/internal/bridge"
)

// dialect is a version of OCPP with the calls that a person may make in it, each with an
// example body. Charging profiles are excluded, because flexd sets them. CONNECTOR and
// TRANSACTION are replaced by the charger's own.
type dialect struct {
	version string
	table   string
}

// The dialects. The calls of 1.6 include those of its security extension.
var (
	ocpp16 = dialect{"1.6", `
CancelReservation {"reservationId":1}
CertificateSigned {"certificateChain":"-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----"}
ChangeAvailability {"connectorId":CONNECTOR,"type":"Operative"}
ChangeConfiguration {"key":"HeartbeatInterval","value":"300"}
ClearCache {}
DataTransfer {"vendorId":"com.example","messageId":"Example"}
DeleteCertificate {"certificateHashData":{"hashAlgorithm":"SHA256","issuerNameHash":"00ff","issuerKeyHash":"00ff","serialNumber":"1"}}
ExtendedTriggerMessage {"requestedMessage":"BootNotification"}
GetCompositeSchedule {"connectorId":CONNECTOR,"duration":60}
GetConfiguration {}
GetDiagnostics {"location":"https://files.example.com/"}
GetInstalledCertificateIds {"certificateType":"CentralSystemRootCertificate"}
GetLocalListVersion {}
GetLog {"logType":"SecurityLog","requestId":1,"log":{"remoteLocation":"https://files.example.com/"}}
InstallCertificate {"certificateType":"CentralSystemRootCertificate","certificate":"-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----"}
RemoteStartTransaction {"connectorId":CONNECTOR,"idTag":"04A2B3"}
RemoteStopTransaction {"transactionId":TRANSACTION}
ReserveNow {"connectorId":CONNECTOR,"expiryDate":"2030-01-01T00:00:00Z","idTag":"04A2B3","reservationId":1}
Reset {"type":"Soft"}
SendLocalList {"listVersion":1,"updateType":"Full","localAuthorizationList":[{"idTag":"04A2B3","idTagInfo":{"status":"Accepted"}}]}
SignedUpdateFirmware {"requestId":1,"firmware":{"location":"https://files.example.com/firmware.bin","retrieveDateTime":"2030-01-01T00:00:00Z","signingCertificate":"-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----","signature":"AAAA"}}
TriggerMessage {"requestedMessage":"StatusNotification","connectorId":CONNECTOR}
UnlockConnector {"connectorId":CONNECTOR}
UpdateFirmware {"location":"https://files.example.com/firmware.bin","retrieveDate":"2030-01-01T00:00:00Z"}`}

	ocpp201 = dialect{"2.0.1", `
CancelReservation {"reservationId":1}
CertificateSigned {"certificateChain":"-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----","certificateType":"ChargingStationCertificate"}
ChangeAvailability {"operationalStatus":"Operative","evse":{"id":CONNECTOR}}
ClearCache {}
DataTransfer {"vendorId":"com.example","messageId":"Example"}
DeleteCertificate {"certificateHashData":{"hashAlgorithm":"SHA256","issuerNameHash":"00ff","issuerKeyHash":"00ff","serialNumber":"1"}}
GetBaseReport {"requestId":1,"reportBase":"ConfigurationInventory"}
GetChargingProfiles {"requestId":1,"evseId":CONNECTOR,"chargingProfile":{}}
GetCompositeSchedule {"evseId":CONNECTOR,"duration":60}
GetInstalledCertificateIds {"certificateType":["CSMSRootCertificate"]}
GetLocalListVersion {}
GetLog {"requestId":1,"logType":"DiagnosticsLog","log":{"remoteLocation":"https://files.example.com/"}}
GetReport {"requestId":1,"componentVariable":[{"component":{"name":"SmartChargingCtrlr"},"variable":{"name":"RateUnit"}}]}
GetTransactionStatus {"transactionId":"TRANSACTION"}
GetVariables {"getVariableData":[{"component":{"name":"OCPPCommCtrlr"},"variable":{"name":"HeartbeatInterval"}}]}
InstallCertificate {"certificateType":"CSMSRootCertificate","certificate":"-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----"}
RequestStartTransaction {"evseId":CONNECTOR,"remoteStartId":1,"idToken":{"idToken":"04A2B3","type":"ISO14443"}}
RequestStopTransaction {"transactionId":"TRANSACTION"}
ReserveNow {"id":1,"evseId":CONNECTOR,"expiryDateTime":"2030-01-01T00:00:00Z","idToken":{"idToken":"04A2B3","type":"ISO14443"}}
Reset {"type":"OnIdle"}
SendLocalList {"versionNumber":1,"updateType":"Full","localAuthorizationList":[{"idToken":{"idToken":"04A2B3","type":"ISO14443"},"idTokenInfo":{"status":"Accepted"}}]}
SetVariables {"setVariableData":[{"attributeValue":"300","component":{"name":"OCPPCommCtrlr"},"variable":{"name":"HeartbeatInterval"}}]}
TriggerMessage {"requestedMessage":"StatusNotification","evse":{"id":CONNECTOR,"connectorId":1}}
UnlockConnector {"evseId":CONNECTOR,"connectorId":1}
UpdateFirmware {"requestId":1,"firmware":{"location":"https://files.example.com/firmware.bin","retrieveDateTime":"2030-01-01T00:00:00Z"}}`}
)

// actions returns the names of the dialect's calls.
func (d dialect) actions() []string {
	var all []string
	for line := range strings.Lines(strings.TrimSpace(d.table)) {
		action, _, _ := strings.Cut(line, " ")
		all = append(all, action)
	}

	return all
}

// dialect returns the charger's version, 1.6 while it is not connected. The caller holds mu.
func (c *charger) dialect() dialect {
	if c.link != nil && c.link.station != nil {
		return ocpp201
	}

	return ocpp16
}

// examples returns the calls that a person may make to the charger, for one of its connectors.
func (c *charger) examples(connector int) []bridge.Call {
	c.mu.Lock()
	defer c.mu.Unlock()

	transaction := []byte(`"1"`)
	if n := c.connectors[connector]; n != nil && n.tx != 0 {
		transaction, _ = json.Marshal(cmp.Or(n.txName, strconv.Itoa(n.tx)))
	}

	d := c.dialect()
	filled := strings.NewReplacer(
		"CONNECTOR", strconv.Itoa(connector),
		"TRANSACTION", string(transaction[1:len(transaction)-1]),
	)

	var all []bridge.Call
	for line := range strings.Lines(strings.TrimSpace(d.table)) {
		action, body, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, bridge.Call{
			Action:  action,
			Example: []byte(filled.Replace(body)),
		})
	}

	return all
}
