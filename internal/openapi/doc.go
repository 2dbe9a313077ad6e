// Command openapi writes what is made of the types of package wire and of the routes of package
// api: the interface's description, the types of the Go client, and the list of them for tests.
//
//	go generate ./...
//
// The source of a schema is a struct of package wire. Its fields' types and tags give types,
// bounds and enumerations. The comment above a field is its description; the one beside
// it is for readers of the code alone. Of a type's comment the first paragraph names it in
// Go, and what follows is the schema's description. What neither type nor tag can say is a
// line of the comment:
//
//	//openapi:addition         the field or schema is flexd's own
//	//openapi:required         an answer always has it, or a request must
//	//openapi:optional         the reverse, of a field that would count as required
//	//openapi:merge {JSON}     further members of the schema; null takes one away
//	//openapi:schema NAME      the schema's name, where it is not the type's
//	//openapi:none             the type is no schema
//	//openapi:client           parameters that the Go client takes as they are
//
// A field is required if its tag says so. Of a type without any such tag, which is an answer,
// each field is that is never left out.
//
// The Go client has a struct for each schema but for those of errors and tokens, with the same
// names for JSON and the same comments, and its ids from client_ids.go. The tests of package wire have a list of the structs.
//
// An operation is a Route of package api with its Operation, which has its words and its
// examples. All else follows: its parameters from the types of package wire that the handler
// reads them as, its role, its body and the shared answers from the route. Where a
// parameter's example or default is to be shown, its field has it by openapi:merge.
//
// What the document says beside that is in document.yaml.
package main
