package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"flexd/internal/flex"
)

// words returns the machine words of an error's faults.
func words(t *testing.T, err error) (w []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*flex.Error](err)
	if !ok {
		t.Fatal(err)
	}
	for _, f := range e.Faults {
		w = append(w, f.Type)
	}
	return w
}

// texts are a list without a limit of its own.
type texts struct {
	Items []string `json:"items" wire:"required"`
}

// TestBounds goes to every limit, one below and one above.
func TestBounds(t *testing.T) {
	number := func(field string) func(int) error {
		return func(n int) error {
			return as[AssetUpdateRequest](fmt.Sprintf(`{"properties":{"%s":%d}}`, field, n))
		}
	}
	limit := func(n int) error { return inQuery[PageQuery]("limit=" + strconv.Itoa(n)) }
	repeat := func(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }

	for _, c := range []struct {
		title string
		at    int // the last value that is taken
		up    int // +1 if greater values are refused, -1 if smaller ones are
		word  string
		read  func(n int) error
	}{
		{"text", MaxText, 1, "value_error.any_str.max_length", func(n int) error {
			return as[MPANValidationRequest](`{"mpan":"` + strings.Repeat("x", n) + `"}`)
		}},

		{"text in a query", MaxText, 1, "value_error.any_str.max_length", func(n int) error {
			return inQuery[MeterSearchQuery]("postcode=" + strings.Repeat("x", n))
		}},
		{"escaped text", MaxText, 1, "value_error.any_str.max_length", func(n int) error {
			return as[MPANValidationRequest](`{"mpan":"` + strings.Repeat(`\u0041`, n) + `"}`)
		}},
		{"a longer text", 16384, 1, "value_error.any_str.max_length", func(n int) error {
			return as[SiteAuthTokenRequest](`{"refresh_token":"` + strings.Repeat("x", n) + `"}`)
		}},
		{"nonempty text", 1, -1, "value_error.any_str.min_length", func(n int) error {
			return as[EligibilityCheckRequest](`{"mpan":"` + strings.Repeat("x", n) + `"}`)
		}},
		{"depth", MaxDepth, 1, "value_error.depth", func(n int) error {
			return as[PlugOutEventRequest](`{"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)
		}},

		{"depth of objects", MaxDepth, 1, "value_error.depth", func(n int) error {
			return as[PlugOutEventRequest](strings.Repeat(`{"x":`, n) + "1" + strings.Repeat("}", n))
		}},
		{"items", MaxItems, 1, "value_error.list.max_items", func(n int) error {
			return as[texts](`{"items":[` + repeat(`"x"`, n) + `]}`)
		}},
		{"blocks of a schedule", 96, 1, "value_error.list.max_items", func(n int) error {
			return as[PlugInScheduleEventRequest](`{"charging_schedule":[` + repeat(`{"start_timestamp":"2026-01-15T10:00:00Z","end_timestamp":"2026-01-15T10:00:00Z"}`, n) + `]}`)
		}},
		{"assets", 100, 1, "value_error.list.max_items", func(n int) error {
			return as[InitialiseRequest](`{"site":{"mpan":"1","postcode":"E1 6AN"},"assets":[` + repeat(`{"external_id":"a","type":"charger"}`, n) + `]}`)
		}},
		{"no assets", 1, -1, "value_error.list.min_items", func(n int) error {
			return as[InitialiseRequest](`{"site":{"mpan":"1","postcode":"E1 6AN"},"assets":[` + repeat(`{"external_id":"a","type":"charger"}`, n) + `]}`)
		}},
		{"no power", 0, -1, "value_error.number.not_ge", number("power_kw")},
		{"power", 1_000_000, 1, "value_error.number.not_le", number("power_kw")},
		{"capacity", 1_000_000, 1, "value_error.number.not_le", number("capacity_kwh")},

		{"value of a reading", 1_000_000_000, 1, "value_error.number.not_le", func(n int) error {
			return as[ReadingDataPoint](strings.Replace(oneReading, "3.7", strconv.Itoa(n), 1))
		}},
		{"smallest limit", 1, -1, "value_error.number.not_ge", limit},
		{"limit", 5000, 1, "value_error.number.not_le", limit},
		{"limit of transactions", 1000, 1, "value_error.number.not_le", func(n int) error {
			return inQuery[TransactionsQuery]("limit=" + strconv.Itoa(n))
		}},
		{"offset", 0, -1, "value_error.number.not_ge", func(n int) error {
			return inQuery[PageQuery](url.Values{"offset": {strconv.Itoa(n)}}.Encode())
		}},
	} {
		for _, n := range []int{c.at - c.up, c.at} {
			if w := words(t, c.read(n)); w != nil {
				t.Errorf("%s: %d is refused: %v", c.title, n, w)
			}
		}

		if w := words(t, c.read(c.at+c.up)); len(w) != 1 || w[0] != c.word {
			t.Errorf("%s: %d gives %v, not %s", c.title, c.at+c.up, w, c.word)
		}
	}
}

func TestReadBody_Limit(t *testing.T) {
	for n, kind := range map[int]flex.Kind{MaxBody - 1: 0, MaxBody: 0, MaxBody + 1: flex.TooLarge} {
		b, err := ReadBody(bytes.NewReader(make([]byte, n)), MaxBody)
		if flex.KindOf(err) != kind || kind == 0 && (err != nil || len(b) != n) {
			t.Errorf("%d bytes: %d, %v", n, len(b), err)
		}
	}
	broken := errors.New("gone")
	if _, err := ReadBody(io.MultiReader(strings.NewReader("{"), errReader{broken}), MaxBody); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestFaults_AreBounded makes more faults than are reported.
func TestFaults_AreBounded(t *testing.T) {
	for n, want := range map[int]int{MaxFaults - 1: MaxFaults - 1, MaxFaults: MaxFaults, MaxFaults + 1: MaxFaults} {
		body := `{"items":[` + strings.TrimSuffix(strings.Repeat("0,", n), ",") + `]}`
		if w := words(t, as[texts](body)); len(w) != want {
			t.Errorf("%d faults are reported as %d", n, len(w))
		}
	}
}
