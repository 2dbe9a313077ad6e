package registry

import "flexd/internal/flex"

// SandboxModels are the sandbox's asset models: one for each case that a client has to handle,
// and those that the interface's examples name.
func SandboxModels() []flex.Model {
	return []flex.Model{
		{Name: "zappi", Type: flex.Charger, CoP11: true, Power: new(flex.Watts(7400))},
		{Name: "charger_model_v1", Type: flex.Charger, CoP11: true, Power: new(flex.Watts(7400))},
		{Name: "sandbox charger", Type: flex.Charger, CoP11: true, Power: new(flex.Watts(7400))},
		{Name: "sandbox car", Type: flex.ElectricVehicle, CoP11: true, Power: new(flex.Watts(7400))},
		{
			Name:     "sandbox battery",
			Type:     flex.Battery,
			CoP11:    true,
			Power:    new(flex.Watts(5000)),
			Capacity: new(flex.WattHours(13_500)),
		},
		{Name: "sandbox heat pump", Type: flex.HeatPump, CoP11: true, Power: new(flex.Watts(3000))},
		{Name: "sandbox hot water tank", Type: flex.HotWaterTank, CoP11: true, Power: new(flex.Watts(3000))},
		{Name: "sandbox charger without CoP 11", Type: flex.Charger, Power: new(flex.Watts(7400))},
		{Name: "sandbox charger that may not enrol", Type: flex.Charger, CoP11: true, Enrol: flex.EnrolDeny},
		{Name: "sandbox charger that may always enrol", Type: flex.Charger, Enrol: flex.EnrolAllow},
	}
}
