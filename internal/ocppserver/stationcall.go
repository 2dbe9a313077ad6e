package ocppserver

import (
	"context"
	"slices"
)

// stationVariables are the variables of OCPP 2.0.1 that correspond to keys of 1.6.
var stationVariables = map[string]variable{
	keyStackLevel:      variableOf("SmartChargingCtrlr", "ProfileStackLevel"),
	keyPeriods:         variableOf("SmartChargingCtrlr", "PeriodsPerSchedule"),
	keyUnits:           variableOf("SmartChargingCtrlr", "RateUnit"),
	keySwitches:        variableOf("SmartChargingCtrlr", "Phases3to1"),
	keyAlignedInterval: variableOf("AlignedDataCtrlr", "Interval"),
	keyAlignedData:     variableOf("AlignedDataCtrlr", "Measurands"),
	keySampleInterval:  variableOf("SampledDataCtrlr", "TxUpdatedInterval"),
	keySampledData:     variableOf("SampledDataCtrlr", "TxUpdatedMeasurands"),
	keyDischarges:      variableOf("V2XChargingCtrlr", "Enabled"),
}

func variableOf(component, name string) variable {
	return variable{Component: named{component}, Variable: named{name}}
}

// station makes calls in the form of OCPP 1.6 to a charger that speaks 2.0.1.
type station struct {
	c   *charger
	ask func(ctx context.Context, action string, in, out any) error
}

// call is link.call for a station. Calls without a conversion, such as a person's, are sent
// unchanged.
func (s station) call(ctx context.Context, action string, in, out any) error {
	switch m := in.(type) {
	case getConfiguration:
		conf, err := s.variables(ctx, m.Keys)
		*out.(*configuration) = conf

		return readAs(err, func(v variables) configuration { return v.plain(m.Keys) })

	case changeConfiguration:
		status, err := s.setVariable(ctx, m)
		*out.(*statusAnswer) = status

		return readAs(err, variablesSet.plain)

	case triggerMessage:
		return s.trigger(ctx, m, out)
	case setChargingProfile:
		return s.ask(ctx, action, s.profile(m), out)
	case clearChargingProfile:
		return s.ask(ctx, action, clearStationProfile{
			ID: m.ID,
			Criteria: stationProfileCriteria{
				EVSE:    m.Connector,
				Purpose: stationPurpose(m.Purpose),
			},
		}, out)

	case getCompositeSchedule:
		var answer stationComposite
		err := s.ask(ctx, action, getStationSchedule{
			EVSE:     m.Connector,
			Duration: m.Duration,
			Unit:     m.Unit,
		}, &answer)
		*out.(*compositeSchedule) = answer.plain()

		return readAs(err, stationComposite.plain)
	}

	return s.ask(ctx, action, in, out)
}

// variables reads the variables that correspond to the keys.
func (s station) variables(
	ctx context.Context,
	keys []string,
) (configuration, error) {
	var request getVariables
	for _, key := range keys {
		if v, known := stationVariables[key]; known {
			request.Data = append(request.Data, v)
		}
	}

	var answer variables
	if err := s.ask(ctx, "GetVariables", request, &answer); err != nil {
		return configuration{}, err
	}

	return answer.plain(keys), nil
}

// plain converts the answer into a configuration with those keys.
func (a variables) plain(keys []string) configuration {
	var conf configuration
	for _, key := range keys {
		v, known := stationVariables[key]
		i := slices.IndexFunc(a.Result, v.same)
		if !known || i < 0 || a.Result[i].Status != accepted {
			conf.Unknown = append(conf.Unknown, key)
			continue
		}

		conf.Known = append(conf.Known, configurationKey{
			Key:   key,
			Value: a.Result[i].Value,
		})
	}

	return conf
}

// same reports whether both name the same variable.
func (v variable) same(o variable) bool {
	return v.Component == o.Component && v.Variable == o.Variable
}

// setVariable sets the variable that corresponds to a key.
func (s station) setVariable(
	ctx context.Context,
	m changeConfiguration,
) (statusAnswer, error) {
	v := stationVariables[m.Key]
	v.Value = m.Value

	var answer variablesSet
	err := s.ask(ctx, "SetVariables", setVariables{[]variable{v}}, &answer)

	return answer.plain(), err
}

// plain converts the answer to OCPP 1.6, which has one setting.
func (a variablesSet) plain() statusAnswer {
	var s statusAnswer
	if len(a.Result) > 0 {
		s.Status = a.Result[0].Status
	}

	return s
}

// trigger requests a message. A station reports the status of one EVSE at a time. Without a
// number, the status of all known EVSEs is requested, and always that of the first.
func (s station) trigger(
	ctx context.Context,
	m triggerMessage,
	out any,
) error {
	numbers := []int{m.Connector}
	if m.Connector == 0 {
		numbers = within(&s.c.mu, s.c.numbers)

		if !slices.Contains(numbers, 1) {
			numbers = append(numbers, 1)
		}
	}

	var err error
	for _, number := range numbers {
		request := stationTrigger{m.Message, evse{ID: integer(number)}}
		if m.Message == "StatusNotification" {
			request.EVSE.Connector = 1
		}

		err = s.ask(ctx, "TriggerMessage", request, out)
		if err != nil {
			return err
		}
	}

	return nil
}

// profile converts a charging profile to OCPP 2.0.1.
func (s station) profile(m setChargingProfile) setStationProfile {
	p := m.Profile

	return setStationProfile{m.Connector, stationProfile{
		ID:          p.ID,
		StackLevel:  p.StackLevel,
		Purpose:     stationPurpose(p.Purpose),
		Kind:        p.Kind,
		Transaction: s.c.transactionName(p.Transaction),
		Schedules:   []stationSchedule{stationScheduleOf(p.Schedule)},
	}}
}

// stationPurpose returns a profile's purpose in OCPP 2.0.1.
func stationPurpose(purpose string) string {
	if purpose == purposeMax {
		return "ChargingStationMaxProfile"
	}

	return purpose
}

// transactionName returns the textual id of a transaction number; empty if there is none.
func (c *charger) transactionName(number int) string {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, n := range c.connectors {
		if number != 0 && numberOf(n.txName) == number {
			return n.txName
		}
	}

	return ""
}
