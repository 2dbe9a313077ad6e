// Command openapi generates files from the types of package wire and the routes of package
// api: the interface's description (openapi.yaml), the types of the Go client, and a list of
// the types for tests.
//
//	go generate ./...
//
// The source of a schema is a struct of package wire. Its fields' types and tags give types,
// limits and enumerations. The comment above a field is its description; the comment beside it
// is only for readers of the code. The first paragraph of a type's comment is its comment in
// Go; the following paragraphs are the schema's description. What neither type nor tag can
// express is a line of the comment:
//
//	//openapi:addition         the field or schema is flexd's own
//	//openapi:required         an answer always has it, or a request must
//	//openapi:optional         the reverse, of a field that would count as required
//	//openapi:merge {JSON}     further members of the schema; null takes one away
//	//openapi:schema NAME      the schema's name, where it is not the type's
//	//openapi:none             the type is no schema
//	//openapi:client           parameters that the Go client takes as they are
//
// A field is required if its tag says so. In a type without any such tag, which is an answer,
// each field is required that is never omitted.
//
// The Go client has a struct for each schema except those of errors and tokens, with the same
// JSON names and the same comments. Its ids are in client_ids.go. The tests of package wire
// have a list of the structs.
//
// An operation is a Route of package api with its Operation, which has its texts and its
// examples. The rest is derived: the parameters from the types of package wire into which the
// handler reads them; the role, the body and the shared answers from the route. A parameter's
// example or default is given at its field by openapi:merge.
//
// All other parts of the document are in document.yaml.
package main
