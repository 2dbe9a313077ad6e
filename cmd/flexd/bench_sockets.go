package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// benchSocketsCommand is the chargers of a benchmark, which starts it.
type benchSocketsCommand struct {
	Address   string `required:"" placeholder:"URL"`
	Authority string `required:"" placeholder:"FILE"`
	Chargers  int    `required:""`
}

// Commands to the chargers.
const (
	orderBegin = "begin"
	orderAgain = "again"
)

// benchServedLimit is how long the benchmark waits for chargers.
const benchServedLimit = 5 * time.Minute

// Run answers each order with the chargers' measurements, until its input ends.
func (b *benchSocketsCommand) Run(ctx context.Context, c console) error {
	text, err := os.ReadFile(b.Authority)
	if err != nil {
		return err
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}}

	all := make([]*socket, b.Chargers)
	for i := range all {
		all[i] = &socket{
			address:         fmt.Sprintf("%s/car-%d", b.Address, i),
			login:           fmt.Sprintf("car-%d:%s", i, benchPassword),
			client:          client,
			answers:         make(chan struct{}, 1),
			profileReceived: make(chan struct{}, 1),
		}
	}

	answers := json.NewEncoder(c.out)
	orders := bufio.NewScanner(c.in)
	for orders.Scan() {
		share := serveSockets(ctx, all, orders.Text())
		if err := answers.Encode(share); err != nil {
			return err
		}
	}

	return orders.Err()
}

// serveSockets makes all chargers do the same at once, and waits until each is served.
func serveSockets(
	ctx context.Context,
	all []*socket,
	order string,
) chargersShare {
	ctx, cancel := context.WithTimeout(ctx, benchServedLimit)
	defer cancel()

	if order == orderAgain {
		for _, s := range all {
			s.conn.CloseNow()
		}
	}

	start := time.Now()
	took := make([]time.Duration, len(all))
	failed := make([]error, len(all))
	var dials, unanswered atomic.Int64

	var wait sync.WaitGroup
	for i, s := range all {
		wait.Go(func() {
			failed[i] = s.serve(ctx, order)
			took[i] = time.Since(start)
			dials.Add(int64(s.dials))
			unanswered.Add(int64(s.unanswered))
		})
	}
	wait.Wait()

	var share chargersShare
	for _, err := range failed {
		if err == nil {
			share.Served++
		} else {
			share.Error = err.Error()
		}
	}

	slices.Sort(took)
	share.Dials = int(dials.Load())
	share.Unanswered = int(unanswered.Load())
	share.Millis = took[len(took)-1].Milliseconds()
	share.Middle = took[len(took)/2].Milliseconds()

	return share
}

// socket is a charger with one connector, as little as it takes to be planned.
type socket struct {
	address string
	login   string
	client  *http.Client

	conn            *websocket.Conn
	answers         chan struct{}
	profileReceived chan struct{} // a profile of the transaction came
	tx              atomic.Int64
	messageCount    int // messages, ever

	dials      int
	unanswered int
}

// serve connects, sends a charger's first messages, and waits for a profile.
func (s *socket) serve(ctx context.Context, order string) error {
	s.dials = 0
	s.unanswered = 0
	s.forget()
	if err := s.dial(ctx); err != nil {
		return err
	}

	if order == orderBegin {
		if err := s.plugIn(ctx); err != nil {
			return err
		}
	}

	if err := s.report(ctx); err != nil {
		return err
	}

	select {
	case <-s.profileReceived:
		return nil
	case <-ctx.Done():
		return errors.New("no profile came")
	}
}

// forget deletes the note that a profile arrived.
func (s *socket) forget() {
	select {
	case <-s.profileReceived:
	default:
	}
}

// dial connects, trying again each second.
func (s *socket) dial(ctx context.Context) error {
	login := base64.StdEncoding.EncodeToString([]byte(s.login))
	for {
		s.dials++
		conn, _, err := websocket.Dial(ctx, s.address, &websocket.DialOptions{ //nolint:bodyclose // the library closes it
			HTTPClient:   s.client,
			Subprotocols: []string{"ocpp1.6"},
			HTTPHeader:   http.Header{"Authorization": {"Basic " + login}},
		})
		if err == nil {
			s.conn = conn
			go s.read(ctx, conn)

			return nil
		}

		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

// plugIn boots and starts a transaction.
func (s *socket) plugIn(ctx context.Context) error {
	if err := s.call(ctx, "BootNotification", map[string]any{
		"chargePointVendor": "Bench",
		"chargePointModel":  "Socket",
	}); err != nil {
		return err
	}

	if err := s.sendStatus(ctx, "Preparing"); err != nil {
		return err
	}

	return s.call(ctx, "StartTransaction", map[string]any{
		"connectorId": 1,
		"idTag":       "tag",
		"meterStart":  1000,
		"timestamp":   time.Now().UTC(),
	})
}

// report sends that the car charges, and the meter's values.
func (s *socket) report(ctx context.Context) error {
	if err := s.sendStatus(ctx, "Charging"); err != nil {
		return err
	}

	value := map[string]any{"value": fmt.Sprint(1000 + s.messageCount)}
	return s.call(ctx, "MeterValues", map[string]any{
		"connectorId":   1,
		"transactionId": s.tx.Load(),
		"meterValue": []any{map[string]any{
			"timestamp":    time.Now().UTC(),
			"sampledValue": []any{value},
		}},
	})
}

func (s *socket) sendStatus(ctx context.Context, status string) error {
	return s.call(ctx, "StatusNotification", map[string]any{
		"connectorId": 1,
		"errorCode":   "NoError",
		"status":      status,
		"timestamp":   time.Now().UTC(),
	})
}

// call sends a call and waits for its answer.
func (s *socket) call(
	ctx context.Context,
	action string,
	body any,
) error {
	s.messageCount++
	s.unanswered++
	frame := []any{2, fmt.Sprint(s.messageCount), action, body}
	if err := writeFrame(ctx, s.conn, frame); err != nil {
		return err
	}

	select {
	case <-s.answers:
		s.unanswered--
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s was not answered", action)
	}
}

func writeFrame(ctx context.Context, conn *websocket.Conn, frame []any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}

	return conn.Write(ctx, websocket.MessageText, b)
}

// read handles answers and the bridge's calls until the connection ends.
func (s *socket) read(ctx context.Context, conn *websocket.Conn) {
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return
		}

		var frame []json.RawMessage
		if json.Unmarshal(b, &frame) != nil || len(frame) < 3 {
			continue
		}

		switch string(frame[0]) {
		case "2":
			var action string
			_ = json.Unmarshal(frame[2], &action) // it is a text, or unknown
			answer := []any{3, frame[1], s.answer(action, frame[3])}
			_ = writeFrame(ctx, conn, answer) // one that is lost shows as a charger without a plan
		case "3":
			s.noteAnswer(frame[2])
		}
	}
}

// noteAnswer records an answer of the bridge. The number of a transaction is stored before the
// next message is read, because that may be the transaction's profile.
func (s *socket) noteAnswer(payload json.RawMessage) {
	var m struct {
		Transaction int64 `json:"transactionId"`
	}

	if json.Unmarshal(payload, &m) == nil && m.Transaction != 0 {
		s.tx.Store(m.Transaction)
	}

	s.answers <- struct{}{}
}

// answer is the charger's answer to the bridge.
func (s *socket) answer(action string, payload json.RawMessage) any {
	switch action {
	case "GetConfiguration":
		return socketConfiguration

	case "SetChargingProfile":
		var m struct {
			Profile struct {
				Transaction int64 `json:"transactionId"`
			} `json:"csChargingProfiles"`
		}

		_ = json.Unmarshal(payload, &m) // without a number it is another profile
		if m.Profile.Transaction != 0 && m.Profile.Transaction == s.tx.Load() {
			select {
			case s.profileReceived <- struct{}{}:
			default:
			}
		}

	case "GetCompositeSchedule":
		return map[string]any{"status": "Rejected"} // many cannot say
	}

	return map[string]any{"status": "Accepted"}
}

// socketConfiguration is such that the bridge has nothing to change.
var socketConfiguration = map[string]any{"configurationKey": []map[string]any{
	{"key": "ChargeProfileMaxStackLevel", "value": "8", "readonly": true},
	{"key": "ChargingScheduleAllowedChargingRateUnit", "value": "Power", "readonly": true},
	{"key": "ChargingScheduleMaxPeriods", "value": "24", "readonly": true},
	{"key": "ClockAlignedDataInterval", "value": "900", "readonly": false},
	{"key": "MeterValuesAlignedData", "value": "Energy.Active.Import.Register", "readonly": false},
}}

// chargers makes the chargers' process carry out an order.
func (p *process) chargers(order string) (chargersShare, error) {
	if _, err := fmt.Fprintln(p.in, order); err != nil {
		return chargersShare{}, err
	}

	var s chargersShare
	err := p.out.Decode(&s)

	return s, err
}
