package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/app"
	"flexd/internal/egress"
)

// TestKeys follows the life of a key file: it is created with a new database, missed when it
// is gone, rotated, and the old key is removed.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	s := store{Database: "sqlite:" + filepath.Join(dir, "flexd.db"), Environment: "sandbox"}
	file := filepath.Join(dir, "flexd.db.key")
	var out bytes.Buffer
	c := console{out: &out, err: io.Discard}

	open := func(s store) *app.App {
		t.Helper()
		h, err := s.openOrCreate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		return h
	}

	run := func(name string, f func(context.Context, console) error, want string) {
		t.Helper()
		out.Reset()
		err := f(t.Context(), c)
		if err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s, want %s", name, out.String(), want)
		}
	}

	h := open(s)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Fatalf("beside a new database: %v %v", info, err)
	}
	if _, _, err := h.Access.AddOrg(t.Context(), "Acme", "acme", ""); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	set := endpointSet{store: s, Name: "Acme", URL: "http://127.0.0.1:9/", AllowPrivateEndpoints: reach{egress.Reach{Prefixes: egress.Private}}}
	run("endpoint set", set.Run, "whsec_")
	run("new", (&keyNew{File: file}).Run, "exists already")
	if err := os.Chmod(file, 0o640); err != nil { // as for flexd's group
		t.Fatal(err)
	}
	run("rotate", (&keyRotate{File: file}).Run, "seals with")
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
		t.Errorf("rotated, others read it than before: %v %v", info, err)
	}

	after, err := os.ReadFile(file)
	if err != nil || !bytes.HasSuffix(after, first) || len(after) != len(first)+45 {
		t.Errorf("rotated, the file holds\n%s%v", after, err)
	}
	run("doctor", (&doctor{cellFlags: cellFlags{store: s}}).Run, "2 of 2 are sealed under older keys")
	run("reseal", (&keyReseal{cellFlags: cellFlags{store: s}}).Run, "2 secrets were sealed again")
	run("doctor", (&doctor{cellFlags: cellFlags{store: s}}).Run, "2 sealed, all under the newest key")

	if err := os.WriteFile(file, first, 0o600); err != nil {
		t.Fatal(err)
	}
	run("with the old key", (&doctor{cellFlags: cellFlags{store: s}}).Run, "does not hold")
	if err := os.WriteFile(file, after[:45], 0o600); err != nil {
		t.Fatal(err)
	}

	run("with the new key", (&endpointList{store: s, Name: "Acme"}).Run, "127.0.0.1:9")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	run("seal persons without", (&keyPersons{store: s}).Run, "--key-file")
	run("without", (&endpointList{store: s, Name: "Acme"}).Run, "--key-file")
	if _, err := os.Stat(file); err == nil {
		t.Error("a key was made for a database that has another")
	}

	serving := serve{cellFlags: cellFlags{store: s}, Listen: "127.0.0.1:0"}
	run("serve without", serving.Run, "--key-file")
	s.KeyFile = filepath.Join(dir, "nowhere")
	run("a file that is not there", (&endpointList{store: s, Name: "Acme"}).Run, "read the key file")
	if err := os.WriteFile(s.KeyFile, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}

	run("a file that is none", (&endpointList{store: s, Name: "Acme"}).Run, "line 1 is no key")
	if ring, err := (store{Database: "postgres://localhost/x"}).keys(); ring != nil || err != nil {
		t.Errorf("on PostgreSQL without a file: %v %v", ring, err)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestKeys_Forgotten seals a database's secrets again while a flexd uses it that has read the
// key file without the newest key. That flexd can still open them, because it reads the file
// again.
func TestKeys_Forgotten(t *testing.T) {
	dir := t.TempDir()
	s := store{Database: "sqlite:" + filepath.Join(dir, "flexd.db"), Environment: "sandbox"}
	c := console{out: io.Discard, err: io.Discard}

	running, err := s.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()

	org, _, err := running.Access.AddOrg(t.Context(), "Acme", "acme", "")
	if err != nil {
		t.Fatal(err)
	}

	set := endpointSet{store: s, Name: "Acme", URL: "http://127.0.0.1:9/", AllowPrivateEndpoints: reach{egress.Reach{Prefixes: egress.Private}}}
	rotate := keyRotate{File: filepath.Join(dir, "flexd.db.key")}
	reseal := keyReseal{cellFlags: cellFlags{store: s}}
	for _, run := range []func(context.Context, console) error{set.Run, rotate.Run, reseal.Run} {
		if err := run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}

	endpoints, err := running.Push.Endpoints(t.Context(), org.ID)
	if err != nil || len(endpoints) != 1 {
		t.Errorf("with the keys of its start: %v %v", endpoints, err)
	}
}

// TestKeys_OlderCopy restores a copy from before a rotation, whose key has since been removed
// from the file. The message says what is missing. With that key added again below the first,
// the copy opens.
func TestKeys_OlderCopy(t *testing.T) {
	dir := t.TempDir()
	s := store{Database: "sqlite:" + filepath.Join(dir, "flexd.db"), Environment: "sandbox"}
	file, copied := filepath.Join(dir, "flexd.db.key"), filepath.Join(dir, "copy.db")
	c := console{out: io.Discard, err: io.Discard}

	h, err := s.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Access.AddOrg(t.Context(), "Acme", "acme", ""); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	copying, rotate, reseal := backup{store: s, File: copied}, keyRotate{File: file}, keyReseal{cellFlags: cellFlags{store: s}}
	for _, run := range []func(context.Context, console) error{copying.Run, rotate.Run, reseal.Run} {
		if err := run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}

	both, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, both[:45], 0o600); err != nil {
		t.Fatal(err)
	}

	list := endpointList{store: store{Database: "sqlite:" + copied, Environment: "sandbox", KeyFile: file}, Name: "Acme"}
	if err := list.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "older copy of the database") {
		t.Errorf("without the older key: %v", err)
	}
	if err := os.WriteFile(file, both, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := list.Run(t.Context(), c); err != nil {
		t.Errorf("with both keys: %v", err)
	}
}
