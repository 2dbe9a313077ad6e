package keyring

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"testing"
)

func ring(t testing.TB, keys ...byte) *Ring {
	t.Helper()
	var all [][KeySize]byte
	for _, k := range keys {
		all = append(all, [KeySize]byte{k})
	}
	r, err := NewRing(all...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var about = About{"bank account", []byte("org"), []byte("row")}

func TestRing_Rotation(t *testing.T) {
	old, both, new := ring(t, 1), ring(t, 2, 1), ring(t, 2)
	sealed, err := old.Seal(rand.Reader, about, []byte("12-34-56"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := both.Seal(rand.Reader, about, []byte("12-34-56"))
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name   string
		ring   *Ring
		sealed []byte
		opens  bool
	}{
		{"old by old", old, sealed, true}, {"old by both", both, sealed, true}, {"old by new", new, sealed, false},
		{"new by old", old, again, false}, {"new by both", both, again, true}, {"new by new", new, again, true},
	} {
		plain, err := c.ring.Open(about, c.sealed)
		if (err == nil) != c.opens || c.opens && string(plain) != "12-34-56" {
			t.Errorf("%s: %q %v", c.name, plain, err)
		}

		if !c.opens && !strings.Contains(err.Error(), "does not hold") {
			t.Errorf("%s says %v", c.name, err)
		}
	}

	if id, ok := KeyOf(again); !ok || id != both.IDs()[0] || id != new.IDs()[0] || !both.Holds(old.IDs()[0]) || new.Holds(old.IDs()[0]) {
		t.Errorf("sealed under %v of %v", id, both.IDs())
	}
	if bytes.Contains(again, []byte("12-34")) {
		t.Error("the value can be read")
	}
}

// TestOpen_KeyAdded opens what another process sealed under a key that was added to the file since, and seals under it from
// then on. A key that has left the file still opens, and a file that cannot be read, or has no such key, changes nothing.
func TestOpen_KeyAdded(t *testing.T) {
	running, other := ring(t, 1), ring(t, 2)
	before, err := running.Seal(rand.Reader, about, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := other.Seal(rand.Reader, about, []byte("after"))
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range []func() (*Ring, error){
		nil,
		func() (*Ring, error) { return nil, io.ErrUnexpectedEOF },
		func() (*Ring, error) { return ring(t, 3, 1), nil },
	} {
		running.ReadAgain(file)
		if _, err := running.Open(about, after); err == nil || running.IDs()[0] == other.IDs()[0] {
			t.Errorf("it opens without its key: %v", err)
		}
	}

	running.ReadAgain(func() (*Ring, error) { return ring(t, 2), nil })
	for want, sealed := range map[string][]byte{"before": before, "after": after} {
		if plain, err := running.Open(about, sealed); err != nil || string(plain) != want {
			t.Errorf("%s: %q %v", want, plain, err)
		}
	}

	again, err := running.Seal(rand.Reader, about, []byte("again"))
	if id, _ := KeyOf(again); err != nil || id != other.IDs()[0] {
		t.Errorf("sealed under %v: %v", id, err)
	}
	if plain, err := running.Open(about, before); err != nil || string(plain) != "before" {
		t.Errorf("the older key opens %q: %v", plain, err)
	}
}

// TestOpen_Bound moves a value elsewhere and changes each of its bytes: it opens nowhere.
func TestOpen_Bound(t *testing.T) {
	r := ring(t, 1)
	sealed, err := r.Seal(rand.Reader, about, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []About{
		{"cloud token", about.Org, about.Row}, {about.Purpose, []byte("other"), about.Row}, {about.Purpose, about.Org, []byte("other")},
		{"bank account", []byte("orgr"), []byte("ow")}, {"bank accounto", []byte("rg"), about.Row}, {about.Purpose, about.Org, nil}, {},
	} {
		if _, err := r.Open(a, sealed); err == nil {
			t.Errorf("it opens about %q", a)
		}
	}

	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := r.Open(about, changed); err == nil {
			t.Errorf("byte %d changed, and it opens", i)
		}
		if _, err := r.Open(about, sealed[:i]); err == nil {
			t.Errorf("cut at %d, and it opens", i)
		}
	}

	if _, err := r.Seal(io.LimitReader(rand.Reader, 5), about, nil); err == nil {
		t.Error("sealed without a nonce")
	}
	empty, err := r.Seal(rand.Reader, about, nil)
	if plain, err2 := r.Open(about, empty); err != nil || err2 != nil || len(plain) != 0 {
		t.Errorf("nothing opens as %q: %v %v", plain, err, err2)
	}
}

func TestReadRing(t *testing.T) {
	lines := make([]string, KeysMax+1)
	for i := range lines {
		var err error
		if lines[i], err = NewLine(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}

	for _, c := range []struct {
		text string
		want string // ids, or a part of the refusal
	}{
		{lines[0], "1 keys"},
		{"# today's\n" + lines[0] + "\n\r\n# last year's\n" + lines[1], "2 keys"},
		{strings.TrimSpace(lines[0]), "1 keys"},
		{strings.Join(lines[:KeysMax], ""), "16 keys"},
		{strings.Join(lines, ""), "1 to 16 keys, not 17"},
		{"", "1 to 16 keys, not 0"},
		{lines[0] + lines[0], "twice"},
		{lines[0] + "x" + lines[1], "line 2 is no key"},
		{strings.ToLower(lines[0][:20]), "line 1 is no key"},
		{lines[0][:24] + "\n", "line 1 is no key"},
	} {
		r, err := ReadRing([]byte(c.text))

		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(len(r.IDs()), " keys")
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
		if err != nil && strings.Contains(got, lines[0][:8]) {
			t.Errorf("the refusal tells a key: %s", got)
		}
	}

	if _, err := NewLine(strings.NewReader("short")); err == nil {
		t.Error("a key of five bytes")
	}
}

// FuzzOpen opens what nobody sealed.
func FuzzOpen(f *testing.F) {
	r := ring(f, 1)
	sealed, err := r.Seal(rand.Reader, about, []byte("secret"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(sealed[:headerSize])
	f.Add(append([]byte{version}, make([]byte, overhead)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if plain, err := r.Open(about, b); err == nil {
			t.Errorf("%x opens as %q", b, plain)
		}
	})
}
