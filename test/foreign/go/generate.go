// Package foreign has a client that oapi-codegen makes of the document, and a story that it
// calls. It is a module of its own, so that nothing of it is linked into flexd.
package foreign

//go:generate go tool oapi-codegen -generate types,client -package generated -o generated/client.go ../../../internal/api/openapi.yaml
