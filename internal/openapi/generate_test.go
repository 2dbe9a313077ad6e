package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's folder.
var root = filepath.Join("..", "..")

// TestGenerate holds the files that are checked in against what is generated.
func TestGenerate(t *testing.T) {
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range files {
		have, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}

		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what is generated: run go generate ./...", name)
		}
	}
}

// TestGenerate_LeavesNone holds that no file of the client's types outlives its source.
func TestGenerate_LeavesNone(t *testing.T) {
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}

	found, err := filepath.Glob(filepath.Join(root, "client", "types_*.go"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}

	for _, name := range found {
		if _, made := files["client/"+filepath.Base(name)]; !made {
			t.Errorf("%s is generated from nothing", name)
		}
	}
}

// TestClientFiles says what a struct becomes in the client.
func TestClientFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "car.go")
	source := "package wire\n\n// Car answers it.\n//\n//openapi:addition\ntype Car struct {\n\t// Its\n\t// name.\n\t//\n\t//openapi:required\n" +
		"\tID *flex.CarID `json:\"id,omitzero\" wire:\"required\"`\n\tBody jsontext.Value `json:\"body\"` // as it was\n}\n\ntype Token struct {\n\tID string `json:\"id\"`\n}\n"
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}

	types, err := readFile(name)
	if err != nil {
		t.Fatal(err)
	}

	files, err := clientFiles(types)
	if err != nil {
		t.Fatal(err)
	}

	want := clientHead + "\nimport \"encoding/json\"\n\n// Car answers it.\ntype Car struct {\n\t// Its\n\t// name.\n\tID *CarID `json:\"id,omitzero\"`\n" +
		"\t// as it was\n\tBody json.RawMessage `json:\"body\"`\n}\n"
	if got := string(files["client/types_car.go"]); got != want {
		t.Errorf("got\n%s, not\n%s", got, want)
	}
}

// schemaOf returns the schema of the one type in a source.
func schemaOf(t *testing.T, source string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "wire.go")
	if err := os.WriteFile(name, []byte("package wire\n\n"+source), 0o600); err != nil {
		t.Fatal(err)
	}

	types, err := readFile(name)
	if err != nil {
		t.Fatal(err)
	}

	document, err := documentOf([]byte("openapi: 3.1.0\n"+here), nil, nil, newSchemas(types))
	if err != nil {
		t.Fatal(err)
	}

	_, made, _ := strings.Cut(string(document), "  schemas:\n")
	made, _, _ = strings.Cut(made, "    EligibleMarket:\n")

	return made
}

// TestSchema says what each part of a source becomes.
func TestSchema(t *testing.T) {
	cases := map[string]struct{ source, want string }{
		"an answer": {
			"// Car answers it.\n//\n// A car, as it\n// was.\n//\n//openapi:addition\ntype Car struct {\n" +
				"\t// Its name.\n\tName string `json:\"name\"` // ours\n\tID flex.CarID `json:\"id,omitzero\"`\n\tKW *float64 `json:\"kw\"`\n}\n",
			"    Car:\n      description: \"A car, as it was.\"\n      type: object\n      required: [name, kw]\n      properties:\n" +
				"        name: { type: string, description: Its name. }\n        id: { type: string, format: uuid }\n" +
				"        kw: { type: [number, \"null\"] }\n      x-flexd-addition: true\n",
		},
		"a request": {
			"type CarRequest struct {\n\tKW *float64 `json:\"kw,omitzero\" wire:\"min=0,max=22.5\"`\n" +
				"\tTariff string `json:\"tariff\" wire:\"required,enum=TariffType\"`\n\tNames []string `json:\"names\" wire:\"items=3,nonempty\"`\n}\n",
			"    CarRequest:\n      type: object\n      required: [tariff]\n      properties:\n" +
				"        kw: { type: number, minimum: 0, maximum: 22.5 }\n        tariff: { $ref: \"#/components/schemas/TariffType\" }\n" +
				"        names: { type: array, minItems: 1, maxItems: 3, items: { type: string } }\n",
		},
		"what the tag cannot say": {
			"//openapi:schema Wagon\ntype Car struct {\n\t//openapi:optional\n\t//openapi:merge {\"format\": null, \"example\": \"12:00\"}\n\tAt WallTime `json:\"at\"`\n}\n",
			"    Wagon:\n      type: object\n      properties:\n        at: { type: string, example: \"12:00\" }\n",
		},
		"no schema": {"type CarQuery struct {\n\tName string `json:\"name\"`\n}\n\n//openapi:none\ntype Car struct {\n\tName string `json:\"name\"`\n}\n", ""},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := schemaOf(t, c.source); got != c.want {
				t.Errorf("got\n%s, not\n%s", got, c.want)
			}
		})
	}
}

// TestSource_Refuses holds that an order which is none is an error that names it.
func TestSource_Refuses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "wire.go")
	source := "package wire\n\ntype Car struct {\n\t//openapi:aditon\n\tName string `json:\"name\"`\n}\n"
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := readFile(name); err == nil || !strings.Contains(err.Error(), "openapi:aditon") {
		t.Errorf("read with %v", err)
	}
}

// TestWriteMember says which lines a value gets: one if it is short, else one for each part, in
// the order in which it was written.
func TestWriteMember(t *testing.T) {
	in := json.NewDecoder(strings.NewReader(`{"b": 1.0, "a": [{"on": "yes", "text": "` + strings.Repeat("long ", 22) + `"}, 2], "none": {}}`))
	in.UseNumber()

	value, err := readJSON(in)
	if err != nil {
		t.Fatal(err)
	}

	var b bytes.Buffer
	writeMember(&b, 3, member{"200", value})
	writeMember(&b, 3, member{"short", []any{"x", []member{{"y", true}}}})

	want := "      '200':\n        b: 1.0\n        a:\n          - 'on': \"yes\"\n            text: \"" + strings.Repeat("long ", 22) + "\"\n" +
		"          - 2\n        none: {}\n      short: [\"x\", { 'y': true }]\n"
	if b.String() != want {
		t.Errorf("wrote\n%s, not\n%s", b.String(), want)
	}
}
