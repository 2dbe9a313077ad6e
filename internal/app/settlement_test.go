package app_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"flexd/client"
	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// provisionalMost is how long after an event's last reading its provisional result may take.
const provisionalMost = time.Minute

// The provisional result of a flex event is there seconds after its last reading came over
// the interface, and within a minute if another process took the reading, so that nothing
// woke the background jobs of this one.
func TestSettlement_SoonAfterTheLastReading(t *testing.T) {
	for _, tt := range []struct {
		name   string
		within time.Duration
		lost   bool
	}{{"woken", 3 * time.Second, false}, {"by another process", provisionalMost, true}} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				synctest.Test(t, func(t *testing.T) {
					e := endedEvent(t, url)

					client := e.client(t, e.app)
					if tt.lost {
						other := e.open(t)
						defer other.Close()
						client = e.client(t, other)
					}

					time.Sleep(21*time.Second + 300*time.Millisecond) // the background jobs run every 5 and 10
					e.report(t, client, 35)
					time.Sleep(30 * time.Second)
					if n := e.credits(t, client); n != 0 {
						t.Fatalf("%d transactions with a reading missing", n)
					}

					e.report(t, client, 36)
					at := time.Now()
					for e.credits(t, client) == 0 {
						if time.Sleep(time.Second); time.Since(at) > tt.within {
							t.Fatalf("no provisional result %v after the last reading", time.Since(at))
						}
					}
				})
			})
		})
	}
}

// eventNight is a flexd at work on a Monday evening on which a charger's pause is over, one
// hour from 17:00, and nothing was read of it yet.
type eventNight struct {
	url   string
	app   *app.App
	user  string
	pass  string
	site  flex.SiteID
	asset flex.AssetID
	day   flex.Day
}

// endedEvent opens flexd in a bubble and has it run until the test ends.
func endedEvent(t *testing.T, url string) *eventNight {
	t.Helper()
	e := &eventNight{url: url, day: flex.Day{Year: 2025, Month: time.February, Dom: 3}}
	time.Sleep(time.Until(e.day.Period(35).Start().Add(-time.Hour)))
	e.app = e.open(t)
	org, password, err := e.app.Access.AddOrg(t.Context(), "Street", "street", "")
	if err != nil {
		t.Fatal(err)
	}

	e.user, e.pass = "street", password.Reveal()
	seed := storetest.NewSeed(t, e.app.DB, url).As(org.ID)
	e.site = seed.Site()
	e.asset = seed.Asset(e.site, flex.Charger, 7400)
	seed.Consent(time.UnixMicro(1))
	err = e.app.DB.Write(t.Context(), org.ID, func(tx *store.Tx) error {
		var before []flex.Reading
		for back := 1; back <= 20; back++ {
			for n := 35; n <= 36; n++ {
				before = append(before, flex.Reading{AssetID: e.asset, Span: e.day.Add(-back).Period(n).Span(), Label: flex.ChargerEnergy, Value: 3_700_000})
			}
		}

		a, err := tx.Asset(t.Context(), e.asset)
		if err != nil {
			return err
		}
		if err := tx.PutTerm(t.Context(), flex.Term{Name: "user_share", Value: "0.5"}); err != nil {
			return err
		}

		if err := tx.SetPause(t.Context(), a, flex.Span{From: e.day.Period(35).Start(), To: e.day.Period(36).End()}, 0); err != nil {
			return err
		}
		return tx.PutReadings(t.Context(), before)
	})
	if err != nil {
		t.Fatal(err)
	}

	var prices []flex.PricedPeriod
	for n := 1; n <= e.day.Periods(); n++ {
		prices = append(prices, flex.PricedPeriod{Period: e.day.Period(n), Price: flex.FromGBPPerMWh(250), Known: true})
	}
	if err := e.app.Publish(t.Context(), "test", time.Time{}, prices); err != nil {
		t.Fatal(err)
	}

	time.Sleep(time.Until(e.day.Period(36).End()))
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	nobody := make(unused)
	go func() { served <- e.app.Serve(ctx, nobody) }()

	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		e.app.Push.Close()
		storetest.Close(t, e.app.DB)
	})
	return e
}

func (e *eventNight) open(t *testing.T) *app.App {
	t.Helper()
	h, err := app.Open(t.Context(), app.Settings{Database: e.url, Keys: storetest.Keys(t), Environment: flex.Sandbox,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// client calls the transports without a socket.
func (e *eventNight) client(t *testing.T, h *app.App) *client.Client {
	c := client.New("http://house", e.user, e.pass)
	c.HTTP.Transport = through{h.Handler()}
	return c
}

// report posts the energy of one half-hour of the event.
func (e *eventNight) report(t *testing.T, c *client.Client, n int) {
	t.Helper()
	span := e.day.Period(n).Span()
	answer, err := c.PostReadings(t.Context(), []client.ReadingDataPoint{{
		AssetID: client.AssetID(e.asset), StartTimestamp: client.At(span.From), EndTimestamp: client.At(span.To), Label: client.LabelChargerEnergy, Value: 0,
	}})
	if err != nil || len(answer.Responses) != 1 || !answer.Responses[0].Accepted {
		t.Fatalf("%+v %v", answer, err)
	}
}

// credits counts the site's transactions and checks them.
func (e *eventNight) credits(t *testing.T, c *client.Client) int {
	t.Helper()
	h, err := c.Transactions(t.Context(), client.SiteID(e.site), client.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range h.Transactions {
		if tr.TransactionType != "flex event" || tr.CreditPence != 93 { // half of 7.4 kWh at 25 p, which is 92.5
			t.Errorf("credited %+v", tr)
		}
	}
	return h.TotalCount
}

// through is a transport that hands requests to a handler.
type through struct{ http.Handler }

func (h through) RoundTrip(r *http.Request) (*http.Response, error) {
	r.RemoteAddr = "192.0.2.1:1"
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// unused is a listener to which nobody connects.
type unused chan struct{}

func (u unused) Accept() (net.Conn, error) { <-u; return nil, net.ErrClosed }
func (u unused) Close() error              { close(u); return nil }
func (u unused) Addr() net.Addr            { return &net.TCPAddr{} }
