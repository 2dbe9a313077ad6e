package keyring

import (
	"fmt"
	"strings"
	"testing"
)

// Equal texts of a kind are sealed alike, others never, and each opens as its kind under its key
// alone.
func TestTexts(t *testing.T) {
	one, other := NewTexts([KeySize]byte{1}), NewTexts([KeySize]byte{2})
	texts := []string{
		"1200023305967",
		"1200023305968",
		"",
		"1",
		strings.Repeat("é", 300),
	}
	seen := map[string]string{}

	for _, kind := range []string{"mpan", "address"} {
		for _, text := range texts {
			for _, indexed := range []bool{false, true} {
				seal := func() string { return one.Seal(kind, text) }
				if indexed {
					seal = func() string {
						return one.SealIndexed(
							kind,
							text,
							strings.ToUpper(text),
						)
					}
				}

				sealed := seal()
				if sealed != seal() {
					t.Errorf("%q is not sealed alike twice", text)
				}
				if !SealedText(sealed) || SealedText(text) {
					t.Errorf(
						"%q and %q cannot be told apart",
						sealed,
						text,
					)
				}
				if len(text) > 1 && strings.Contains(sealed, text) {
					t.Errorf("%q can be read in %q", text, sealed)
				}

				name := fmt.Sprint(kind, " ", text, " ", indexed)
				if was, there := seen[sealed]; there && was != name {
					t.Errorf("%s and %s are sealed alike", was, name)
				}
				seen[sealed] = name

				if got, err := one.Open(kind, sealed, indexed); err != nil || got != text {
					t.Errorf("%s opens as %q: %v", name, got, err)
				}
				if got, err := one.Open(kind+"s", sealed, indexed); err == nil {
					t.Errorf("%s opens as another kind: %q", name, got)
				}
				if got, err := other.Open(kind, sealed, indexed); err == nil {
					t.Errorf(
						"%s opens under another key: %q",
						name,
						got,
					)
				}
			}
		}
	}
}

// Texts of one normal form begin with its index, and no others do.
func TestTexts_Index(t *testing.T) {
	s := NewTexts([KeySize]byte{1})
	index := s.Index("e-mail", "ann@home.example")
	if len(index) != IndexLength {
		t.Fatalf("an index has %d characters", len(index))
	}

	for text, want := range map[string]bool{
		"Ann@home.example": true, "ann@HOME.example": true, "ann@home.example": true,
		"ann@home.exampl": false, "bob@home.example": false,
	} {
		sealed := s.SealIndexed("e-mail", text, strings.ToLower(text))
		if got := strings.HasPrefix(sealed, index); got != want {
			t.Errorf("%s is found: %v", text, got)
		}
	}

	if strings.HasPrefix(s.SealIndexed("address", "ann@home.example", "ann@home.example"), index) {
		t.Error("another kind is found")
	}
}

// FuzzTexts opens sealed texts of which one byte was changed, and what nobody sealed.
func FuzzTexts(f *testing.F) {
	s := NewTexts([KeySize]byte{1})
	f.Add("1 High Street", "x", 5)
	f.Add("", TextMark, 0)
	f.Fuzz(func(t *testing.T, text, stranger string, at int) {
		if got, err := s.Open("mpan", stranger, false); err == nil {
			t.Errorf("%q opens as %q", stranger, got)
		}

		sealed := []byte(s.Seal("mpan", text))
		if at < 0 {
			at = -(at + 1)
		}
		sealed[at%len(sealed)] ^= 1
		if got, err := s.Open("mpan", string(sealed), false); err == nil {
			t.Errorf(
				"changed at %d it opens as %q",
				at%len(sealed),
				got,
			)
		}
	})
}

func BenchmarkTexts(b *testing.B) {
	s := NewTexts([KeySize]byte{1})
	sealed := s.SealIndexed(
		"address",
		"12 High Street, Newtown",
		"12 high street newtown",
	)

	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.SealIndexed(
				"address",
				"12 High Street, Newtown",
				"12 high street newtown",
			)
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Open("address", sealed, true); err != nil {
				b.Fatal(err)
			}
		}
	})
}
