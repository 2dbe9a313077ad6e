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

// write makes each file of the module at root again.
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
