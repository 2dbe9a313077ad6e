package ocppserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

// lateAfter is how long a slow charger of these tests needs for an answer: longer than Timing.Call.
const lateAfter = 45 * time.Second

// pipes is a listener whose connections are pipes, so that what waits for them does so in fake
// time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// slow is a charger at the bridge's own connection that answers each call after a while, in
// fake time. Nothing else of the bridge runs: the tests do its worker's rounds.
type slow struct {
	*testing.T
	*charger
	n       *connector
	answers func(action string, payload []byte) string // its payload; a CALLERROR begins with "!"
	after   time.Duration
	asked   []string // the actions, or the purposes of profiles
}

func newSlow(t *testing.T, version string, answers func(action string, payload []byte) string) *slow {
	b := New(Settings{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	b.ctx = ctx
	c := &charger{b: b, id: "CP1", wakeup: make(chan struct{}, 1), connectors: map[int]*connector{}, stop: cancel}
	c.up = &upstream{c: c, signal: make(chan struct{}, 1), values: map[string]string{}}
	s := &slow{T: t, charger: c, n: c.connector(1), answers: answers, after: lateAfter}
	power := 7.4
	s.n.asset = client.AssetResponse{ID: client.AssetID{1}, Properties: &client.AssetProperties{PowerKW: &power}}
	s.n.fetch = false

	line := make(pipes)
	held := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(held)
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{version}})
		if err == nil {
			c.serveLink(ctx, conn)
		}
	})}

	go func() { _ = server.Serve(line) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		line <- far
		return near, nil
	}}
	conn, _, err := websocket.Dial(ctx, "ws://bridge/CP1", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{version}})
	if err != nil {
		t.Fatal(err)
	}

	gone := make(chan struct{})
	go func() { defer close(gone); s.read(ctx, conn) }()
	t.Cleanup(func() {
		cancel()
		conn.CloseNow()
		<-held
		<-gone
		close(line)
		_ = server.Close()
		transport.CloseIdleConnections()
	})

	synctest.Wait()
	c.configured = true
	c.configureAt = time.Time{}
	c.capabilities = capabilitiesOf(configuration{})

	return s
}

// read answers each call after a while, also while others wait for their answers.
func (s *slow) read(ctx context.Context, conn *websocket.Conn) {
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return
		}

		var frame []json.RawMessage
		var action string
		_ = json.Unmarshal(b, &frame)
		_ = json.Unmarshal(frame[2], &action)
		answer := s.answers(action, frame[3])
		s.mu.Lock()
		s.asked = append(s.asked, action)

		s.mu.Unlock()
		time.AfterFunc(s.after, func() {
			text := fmt.Sprintf(`[3,%s,%s]`, frame[1], answer)
			if code, refused := strings.CutPrefix(answer, "!"); refused {
				text = fmt.Sprintf(`[4,%s,%q,"",{}]`, frame[1], code)
			}
			_ = conn.Write(ctx, websocket.MessageText, []byte(text))
		})
	}
}

// wants gives the charger a plan: 7.4 kW from now on.
func (s *slow) wants() *pushTarget {
	now := time.Now()
	profile, err := ocpp.FromLimits(flex.AssetID(s.n.asset.ID), []flex.Step{{
		Span: flex.Span{From: now.Truncate(time.Minute), To: now.Truncate(time.Minute).Add(4 * time.Hour)}, Limit: 7400,
	}})
	if err != nil {
		s.Fatal(err)
	}

	s.n.want = &pushTarget{event: client.EventID{1}, profile: profile}

	return s.n.want
}

// round is what a charger's worker does about late answers and plans.
func (s *slow) round() {
	_ = s.takeLate(s.Context()) // it is tried again in any case
	_ = s.apply(s.Context(), s.n)
}

// said are the callbacks so far.
func (s *slow) said() (all []client.CallbackStatus) {
	for _, c := range s.callbacks {
		all = append(all, c.Status)
	}
	return all
}

// TestLate_Profile: a profile that is accepted after the time for an answer counts as
// accepted, in its form, and even after the delivery has failed.
func TestLate_Profile(t *testing.T) {
	for _, version := range []string{subprotocol, subprotocol201} {
		for name, x := range map[string]struct {
			rounds int
			want   []client.CallbackStatus
		}{
			"after the first try": {1, []client.CallbackStatus{client.CallbackAccepted}},
			"after all tries":     {triesMax, []client.CallbackStatus{client.CallbackFailed}},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSlow(t, version, func(string, []byte) string { return `{"status":"Accepted"}` })
					s.after = time.Duration(x.rounds) * s.b.Timing.Call // it answers all when the last one is given up
					s.after += 15 * time.Second
					p := s.wants()

					for range x.rounds {
						_ = s.apply(t.Context(), s.n)
					}
					if p.sent.steps != nil || p.isOver != (x.rounds == triesMax) {
						t.Fatalf("before its answer it is over: %v, sent: %v", p.isOver, p.sent.steps)
					}

					time.Sleep(15 * time.Second)
					synctest.Wait()
					s.round()
					if p.sent.steps == nil || p.isOver || p.sentAt.After(time.Now().Add(-s.after)) {
						t.Errorf("after its answer it is over: %v, sent: %v at %v", p.isOver, p.sent.steps, p.sentAt)
					}
					if !slices.Equal(s.said(), x.want) || s.capabilities.Taken[formKey(false)].Purpose != purposeTxDefault {
						t.Errorf("flexd receives %v, and the form is %+v", s.said(), s.capabilities.Taken)
					}

					if _, follows := s.inspect(s.n); follows {
						t.Error("it is compared outside of a transaction")
					}
					s.n.tx = 7
					if _, follows := s.inspect(s.n); !follows {
						t.Error("it is not compared with its plan")
					}
				})
			})
		}
	}
}

// TestLate_Forms: a charger that refuses a form late is sent the next one, until it accepts
// one or has refused all; and one that knows no profiles is left alone.
func TestLate_Forms(t *testing.T) {
	for name, x := range map[string]struct {
		answer func(payload []byte) string
		want   client.CallbackStatus
		most   int // profiles
	}{
		"takes amperes": {func(b []byte) string {
			if strings.Contains(string(b), `"chargingRateUnit":"A"`) {
				return `{"status":"Accepted"}`
			}

			return `{"status":"Rejected"}`
		}, client.CallbackAccepted, 20},
		"refuses all":       {func([]byte) string { return `{"status":"Rejected"}` }, client.CallbackRejected, 40},
		"knows no profiles": {func([]byte) string { return "!NotSupported" }, client.CallbackRejected, unknownMax + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, subprotocol, func(_ string, b []byte) string { return x.answer(b) })
				p := s.wants()

				for i := 0; len(s.callbacks) == 0 && i < 100; i++ {
					s.round()
					select {
					case <-s.wakeup:
					case <-time.After(time.Minute):
					}
				}
				if !slices.Equal(s.said(), []client.CallbackStatus{x.want}) || len(s.asked) > x.most {
					t.Errorf("flexd receives %v after %d profiles, of which %d were refused late", s.said(), len(s.asked), len(p.refusedForms))
				}
			})
		})
	}
}

// TestLate_Superseded: the late answer to a plan that was replaced, or is to be sent anew,
// changes nothing.
func TestLate_Superseded(t *testing.T) {
	for name, change := range map[string]func(*slow){
		"a newer plan":  func(s *slow) { s.wants() },
		"a transaction": func(s *slow) { s.n.tx = 9; s.n.resendProfile() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
				p := s.wants()
				_ = s.apply(t.Context(), s.n)

				change(s)
				time.Sleep(lateAfter)
				synctest.Wait()
				_ = s.takeLate(t.Context())
				if p.sent.steps != nil || s.n.want.sent.steps != nil || len(s.callbacks) > 0 {
					t.Errorf("its answer counts: %v", s.said())
				}
			})
		})
	}
}

// TestLate_TooLate: an answer counts for lateTime, and what is remembered is bounded.
func TestLate_TooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
		s.after = lateTime + time.Hour
		p := s.wants()
		_ = s.apply(t.Context(), s.n)
		time.Sleep(lateTime)

		_ = s.takeLate(t.Context())
		time.Sleep(s.after)
		synctest.Wait()
		_ = s.takeLate(t.Context())
		if p.sent.steps != nil || len(s.lateAnswers) > 0 {
			t.Errorf("an answer counts after %v", s.after)
		}

		for range 2 * unansweredMax {
			var out statusAnswer
			s.ifLate(s.link.call(t.Context(), "Reset", empty{}, &out), nil)
		}
		if len(s.lateAnswers) != unansweredMax || len(s.link.late) != unansweredMax {
			t.Errorf("%d and %d calls are remembered", len(s.lateAnswers), len(s.link.late))
		}
	})
}

// TestLate_Others: what else a charger answers late is taken up: what it can do, what it will
// do, that it sends its meter, its floor, and what people asked.
func TestLate_Others(t *testing.T) {
	for _, version := range []string{subprotocol, subprotocol201} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, version, answerOf)
				s.configured = false
				_ = s.configure(t.Context())
				if s.capabilities.Levels != nil && slices.Contains(s.capabilities.Levels, 3) {
					t.Fatalf("it is known at once that it has levels %v", s.capabilities.Levels)
				}

				time.Sleep(lateAfter)
				synctest.Wait()
				_ = s.takeLate(t.Context())
				if !slices.Contains(s.capabilities.Levels, 3) {
					t.Errorf("it has levels %v", s.capabilities.Levels)
				}

				s.n.tx = 7
				s.n.txName = "seven"
				s.after = 0
				s.wants()
				if err := s.apply(t.Context(), s.n); err != nil || !slices.Equal(s.said(), []client.CallbackStatus{client.CallbackAccepted, client.CallbackExecuted}) {
					t.Fatalf("in time flexd receives %v, %v", s.said(), err)
				}

				s.callbacks = nil
				s.n.want = nil
				s.after = lateAfter
				s.wants().event[0] = 2
				for range 2 { // the profile, then the question
					s.round()
					time.Sleep(lateAfter)
					synctest.Wait()
				}

				_ = s.takeLate(t.Context())
				if !slices.Equal(s.said(), []client.CallbackStatus{client.CallbackAccepted, client.CallbackExecuted}) {
					t.Errorf("late flexd receives %v", s.said())
				}

				s.trigger(t.Context(), s.link, s.n)
				if !s.settings.NoTrigger {
					t.Fatal("it is asked for its meter again before it has answered")
				}
				time.Sleep(lateAfter)
				synctest.Wait()
				_ = s.takeLate(t.Context())
				if s.settings.NoTrigger {
					t.Error("it is not asked for its meter any more")
				}

				floor := flex.Watts(1400)
				s.b.Floor = &floor
				_ = s.floor(t.Context(), s.n)
				time.Sleep(lateAfter)
				synctest.Wait()
				_ = s.takeLate(t.Context())
				if !s.n.floorSent {
					t.Error("its floor is not known")
				}
			})
		})
	}
}

// answerOf is what a charger says that follows.
func answerOf(action string, payload []byte) string {
	switch action {
	case "GetConfiguration":
		return `{"configurationKey":[{"key":"ChargeProfileMaxStackLevel","readonly":true,"value":"3"}]}`
	case "GetVariables":
		return `{"getVariableResult":[{"attributeStatus":"Accepted","attributeValue":"3","component":{"name":"SmartChargingCtrlr"},"variable":{"name":"ProfileStackLevel"}}]}`
	case "SetVariables":
		return `{"setVariableResult":[]}`
	case "GetCompositeSchedule":
		const limit = `"chargingRateUnit":"A","chargingSchedulePeriod":[{"startPeriod":0,"limit":32}]`
		if strings.Contains(string(payload), "evseId") {
			return `{"status":"Accepted","schedule":{"evseId":1,"duration":60,"scheduleStart":"2000-01-01T00:00:00Z",` + limit + `}}`
		}

		return `{"status":"Accepted","connectorId":1,"chargingSchedule":{` + limit + `}}`
	}

	return `{"status":"Accepted"}`
}

// TestLate_Calls: an operator's call that gets no answer in time fails, and the late answer
// is among the charger's reports; a platform's call waits for it.
func TestLate_Calls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, subprotocol, func(action string, _ []byte) string {
			if action == "GetDiagnostics" {
				return "!InternalError"
			}
			return `{"status":"Accepted"}`
		})
		s.b.OfficeToken = "a token of the office"
		s.b.chargers["CP1"] = s.charger

		for _, action := range []string{"Reset", "GetDiagnostics"} {
			r := httptest.NewRequest("POST", "/chargers/CP1/call/"+action, strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer "+s.b.OfficeToken.Reveal())
			w := httptest.NewRecorder()
			s.b.office().ServeHTTP(w, r)
			if w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), "reports") {
				t.Errorf("%s is answered %d %s", action, w.Code, w.Body)
			}
		}

		began := time.Now()
		answer, err := s.up.pass(t.Context(), "ClearCache", json.RawMessage("{}"))
		if string(answer) != `{"status":"Accepted"}` || err != nil || time.Since(began) < lateAfter {
			t.Errorf("the platform is answered %s %v after %v", answer, err, time.Since(began))
		}

		_ = s.takeLate(t.Context())
		text, _ := json.Marshal(s.stationReports)
		for _, want := range []string{`"action":"Reset","body":{"status":"Accepted"}`, `"action":"GetDiagnostics","body":{"error":"CALLERROR InternalError: "}`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the reports %s lack %s", text, want)
			}
		}
	})
}
