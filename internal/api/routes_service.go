package api

// serviceRoutes are the operations of service.
var serviceRoutes = []Route{
	{Method: "GET", Pattern: "/openapi.json", Role: Public, Document: true, handle: (*Server).openAPI},
	{Method: "GET", Pattern: "/docs", Role: Public, Document: true, handle: (*Server).docs},
	{Method: "GET", Pattern: "/docs/{file}", Role: Public, Document: true, handle: (*Server).docs},
	{Method: "GET", Pattern: "/llms.txt", Role: Public, Document: true, handle: (*Server).llms},
	{
		Method:  "GET",
		Pattern: "/healthz",
		Role:    Public,
		handle:  (*Server).healthz,
		Operation: &Operation{
			ID: "healthz", Tag: "service", Addition: true,
			Summary: "Whether the process lives",
			Answer:  Answer{Text: "It does."},
		},
	},

	{
		Method:  "GET",
		Pattern: "/readyz",
		Role:    Public,
		handle:  (*Server).readyz,
		Operation: &Operation{
			ID: "readyz", Tag: "service", Addition: true,
			Summary:  "Whether requests can be served",
			Text:     "Whether the store answers and is of this version.",
			Answer:   Answer{Text: "They can."},
			Problems: []Problem{unavailable},
		},
	},

	{Method: "GET", Pattern: "/metrics", Role: Public, Unlisted: true, handle: (*Server).showMetrics},
}
