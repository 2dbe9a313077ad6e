// Command openapi writes what is made of the types of package wire and of the routes of package
// api: the interface's description, the types of the Go client, and the list of them for tests.
//
//	go generate ./...
//
// The source of a schema is a struct of package wire. Its fields' types and tags give types,
// bounds and enumerations. What stands above a field is its description; what stands beside
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

import (
	"fmt"
	"os"
	"path/filepath"

	"flexd/internal/api"
)

func main() {
	if err := write(filepath.Join("..", "..")); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

// write makes each file of the module at root anew.
func write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}

	for name, body := range files {
		err := os.WriteFile(filepath.Join(root, name), body, 0o644)
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}

	return nil
}

// generate returns the generated files of the module at root by their names in it.
func generate(root string) (map[string][]byte, error) {
	types, err := readTypes(filepath.Join(root, "internal", "wire"))
	if err != nil {
		return nil, err
	}

	document, err := readDocument(root, newSchemas(types))
	if err != nil {
		return nil, err
	}

	files, err := clientFiles(types)
	if err != nil {
		return nil, err
	}

	structs, err := structsOf(types)
	if err != nil {
		return nil, err
	}

	ids, err := clientIDTypes()
	if err != nil {
		return nil, err
	}

	files[clientIDFile] = ids
	files["internal/api/openapi.yaml"] = document
	files[structsFile] = structs

	return files, nil
}

// readDocument makes the document of the module at root.
func readDocument(root string, s *schemas) ([]byte, error) {
	prose, err := os.ReadFile(filepath.Join(
		root,
		"internal",
		"openapi",
		"document.yaml",
	))
	if err != nil {
		return nil, fmt.Errorf("read the prose: %w", err)
	}

	source, err := readSource(filepath.Join(root, "internal", "api"))
	if err != nil {
		return nil, err
	}

	o := operations{s, source}
	paths, err := o.paths(api.Routes())
	if err != nil {
		return nil, err
	}

	problems, err := o.problems(api.Routes())
	if err != nil {
		return nil, err
	}

	return documentOf(prose, paths, problems, s)
}
