package ocppserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// TestReplaceFile_PowerCut: the new content is synced before it has the name, and then the
// name: at no instant would a power cut leave a file without its content.
func TestReplaceFile_PowerCut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "CP1"+stateSuffix)
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}

	type step struct{ synced, named string }
	var steps []step
	sync := syncFile
	t.Cleanup(func() { syncFile = sync })
	syncFile = func(f *os.File) error {
		now, err := os.ReadFile(path)
		steps = append(steps, step{filepath.Base(f.Name()), string(now)})
		return errors.Join(err, sync(f))
	}

	if err := replaceFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}

	want := []step{{"CP1" + stateSuffix + ".new", "old"}, {filepath.Base(dir), "new"}}
	if len(steps) != 2 || steps[0] != want[0] || steps[1] != want[1] {
		t.Errorf("what was synced, and what the name led to then: %v, want %v", steps, want)
	}
}

// TestReplaceFile_DiskFails: what cannot be brought to the disk does not take the place of
// what is there.
func TestReplaceFile_DiskFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "CP1"+stateSuffix)
	if err := replaceFile(path, []byte("old")); err != nil {
		t.Fatal(err)
	}

	full := errors.New("no space left on device")
	sync := syncFile
	t.Cleanup(func() { syncFile = sync })
	syncFile = func(*os.File) error { return full }
	if err := replaceFile(path, []byte("new")); !errors.Is(err, full) {
		t.Errorf("a sync that fails: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// BenchmarkReplaceFile saves the state of chargers, as many at once as the bridge does.
func BenchmarkReplaceFile(b *testing.B) {
	dir, text := b.TempDir(), make([]byte, 4096)
	var n atomic.Int64
	b.SetParallelism(savingMax / 2)
	b.RunParallel(func(p *testing.PB) {
		path := filepath.Join(dir, fmt.Sprint(n.Add(1), stateSuffix))
		for p.Next() {
			if err := replaceFile(path, text); err != nil {
				b.Error(err)
			}
		}
	})
}
