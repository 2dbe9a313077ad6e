package console

import (
	"flexd/internal/access"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/operations"
)

// Sorted files of deliveries are in several parts, and are sorted several times, with few rows.
func init() { sortedPushes.sorted, sortedPushes.read = 60, 25 }

// SurfaceRoute is a route as tests of permissions see it.
type SurfaceRoute struct {
	Pattern string
	Public  bool
	Named   access.Permission // "" where the route names none
	Needs   access.Permission
}

// Surface returns every route.
func Surface() []SurfaceRoute {
	routes := make([]SurfaceRoute, 0, len(surface))
	for _, rt := range surface {
		routes = append(routes, SurfaceRoute{rt.pattern, rt.public, rt.needs, rt.permission()})
	}
	return routes
}

// AlertSee is where an alert of all organisations leads.
func AlertSee(kind operations.Kind) string {
	return (&alertsPage{}).See(flex.Alert{Kind: string(kind)})
}

// BatteryReasons are the reasons that the page of a battery gives for its plan, line by line.
func BatteryReasons(w control.BatteryWhy) (reasons []string) {
	for _, s := range layOutBattery(w).Stretches {
		reasons = append(reasons, s.Reason)
	}
	return reasons
}
