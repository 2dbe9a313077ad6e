package ocppserver

import (
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// TestPost_Poison: a reading that flexd fails on does not keep the others back, and is not
// sent for ever.
func TestPost_Poison(t *testing.T) {
	taken := map[float64]bool{}
	calls := 0
	flexd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Content-Type"), "form") {
			_, _ = w.Write([]byte(`{"access_token":"x","token_type":"bearer","expires_in":3600}`))
			return
		}

		calls++
		var body struct {
			Readings []client.ReadingDataPoint `json:"readings"`
		}

		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}

		for _, p := range body.Readings {
			if p.Value == 7 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
		}

		for _, p := range body.Readings {
			taken[p.Value] = true
		}

		_, _ = w.Write([]byte(`{"responses":[]}`))
	}))

	t.Cleanup(flexd.Close)

	now := night
	b := New(Settings{Client: client.New(flexd.URL, "acme", "x"), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	c := &charger{b: b, id: "CP1"}
	for i := range 20 {
		c.report(report{Asset: client.AssetID{1}, Span: flex.Span{From: night, To: night}, Label: flex.ChargerRegister, KWh: float64(i)})
	}

	c.report(report{KWh: math.Inf(1)})
	c.report(report{KWh: math.NaN()})

	for range 30 {
		now = now.Add(time.Hour)
		_ = c.post(t.Context())
	}

	if len(taken) != 19 || len(c.reports) != 0 || taken[7] {
		t.Errorf("flexd has %d of 19 readings after %d calls, %d wait", len(taken), calls, len(c.reports))
	}
}
