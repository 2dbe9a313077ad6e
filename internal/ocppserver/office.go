package ocppserver

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"flexd/internal/bridge"
	"flexd/internal/flex"
	"flexd/internal/web"
)

// transactionsMax is the most stored transactions of a charger.
const transactionsMax = 200

// noteStart records the start of a transaction. The caller holds mu.
func (c *charger) noteStart(m startTransaction, number int) {
	c.transactions = append(c.transactions, bridge.Transaction{
		Number:    number,
		Connector: int(m.Connector),
		Tag:       m.Tag,
		Start:     m.At.Time,
		MeterWh:   max(0, m.Meter.value),
	})

	if len(c.transactions) > transactionsMax {
		c.transactions = c.transactions[1:]
	}
}

// noteStop records the end of a transaction. The caller holds mu.
func (c *charger) noteStop(m stopTransaction) {
	for i := range slices.Backward(c.transactions) {
		t := &c.transactions[i]
		if t.Number == int(m.Transaction) {
			t.Stop = m.At.Time
			t.EndWh = max(0, m.Meter.value)
			t.Reason = m.Reason

			return
		}
	}
}

// office serves the operators of the chargers: calls with their answers, and transactions.
func (b *Bridge) office() *web.Mux {
	mux := web.NewMux()
	mux.HandleFunc("POST /chargers/{id}/call/{action}", b.takeCall)
	mux.HandleFunc("GET /chargers", b.showChargers)
	mux.HandleFunc("GET /chargers/{id}/reports", b.showReports)
	mux.HandleFunc("GET /assets/{asset}", b.showAsset)
	mux.HandleFunc("GET /tags", b.showTags)
	mux.HandleFunc("GET /chargers/{id}", b.showCharger)
	mux.HandleFunc("GET /chargers/{id}/transactions", b.showTransactions)

	return mux
}

// guardOffice admits only requests with the office's token.
func (b *Bridge) guardOffice(office http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		want := b.OfficeToken.Reveal()
		if subtle.ConstantTimeCompare([]byte(token), []byte(want)) != 1 ||
			want == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "wrong or missing token", http.StatusUnauthorized)
			return
		}
		office.ServeHTTP(w, r)
	})
}

// known returns a charger that has connected before. If there is none, it writes the error answer.
func (b *Bridge) known(
	w http.ResponseWriter,
	r *http.Request,
) (*charger, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.chargers[r.PathValue("id")]
	if !ok {
		http.Error(
			w,
			"no charger of that id has connected",
			http.StatusNotFound,
		)
	}

	return c, ok
}

// lastLonger extends a connection's deadlines beyond the charger's time for an answer, so that the
// caller receives the timeout as an answer. A connection without deadlines stays without.
func (b *Bridge) lastLonger(w http.ResponseWriter) {
	until := time.Now().Add(b.Timing.Call + writeTime)
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(until)
	_ = conn.SetWriteDeadline(until)
}

// takeCall makes a call to a charger and returns the charger's answer to the caller.
func (b *Bridge) takeCall(w http.ResponseWriter, r *http.Request) {
	c, ok := b.known(w, r)
	if !ok {
		return
	}

	b.lastLonger(w)
	action := r.PathValue("action")
	c.mu.Lock()
	calls := c.dialect().actions()
	c.mu.Unlock()

	if !slices.Contains(calls, action) {
		http.Error(
			w,
			"the calls are "+strings.Join(calls, ", "),
			http.StatusUnprocessableEntity,
		)

		return
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pushMax))
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err != nil || !json.Valid(body) {
		http.Error(
			w,
			"the body is not JSON, or too large",
			http.StatusBadRequest,
		)

		return
	}

	answer, err := c.officeCall(r.Context(), action, body)
	b.Log.Info(
		"a charger was called",
		"charger",
		c.id,
		"action",
		action,
		"from",
		b.TrustedProxies.Client(r),
		"err",
		err,
	)

	c.ifLate(err, func(_ context.Context, answer func(out any) error) error {
		c.answerLate(action, answer)
		return nil
	})

	if err != nil {
		http.Error(w, explainError(err), statusOf(err))
		return
	}

	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // an error means that the caller has gone
}

// explainError describes a failed call for the caller.
func explainError(err error) string {
	if _, ok := errors.AsType[*lateReply](err); ok {
		return err.Error() + ": if the charger still answers, its answer will be among its reports"
	}

	return err.Error()
}

// answerLate stores the late answer to a person's call among the charger's reports. A failure is
// stored as the text of its error.
func (c *charger) answerLate(action string, answer func(out any) error) {
	var body json.RawMessage
	if err := answer(&body); err != nil {
		body, _ = json.Marshal(map[string]string{"error": err.Error()}) // it never fails
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepReport(action, body, c.b.Now())
}

var errNotConnected = errors.New("the charger is not connected")

// officeCall makes a call to a charger, within a charger's time for an answer.
func (c *charger) officeCall(
	ctx context.Context,
	action string,
	payload json.RawMessage,
) (json.RawMessage, error) {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return nil, errNotConnected
	}

	var out json.RawMessage
	err := l.call(ctx, action, payload, &out)

	return out, err
}

// statusOf returns the HTTP status for a failed call.
func statusOf(err error) int {
	callErr, isRefused := errors.AsType[*callError](err)
	if errors.Is(err, errNotConnected) || errors.Is(err, errLinkLost) {
		return http.StatusConflict
	}

	if isRefused && (callErr.Code == codeNotImplemented || callErr.Code == codeNotSupported) {
		return http.StatusNotImplemented
	}

	if isRefused {
		return http.StatusBadGateway
	}

	return http.StatusGatewayTimeout
}

// showTransactions lists a charger's transactions, the newest last.
func (b *Bridge) showTransactions(w http.ResponseWriter, r *http.Request) {
	c, ok := b.known(w, r)
	if !ok {
		return
	}

	c.mu.Lock()
	all := append([]bridge.Transaction{}, c.transactions...)
	c.mu.Unlock()

	writeJSON(w, all)
}

// reportCalls are the messages of OCPP 2.0.1 with which a charger sends requested reports.
var reportCalls = []string{
	"NotifyCustomerInformation", "NotifyMonitoringReport", "NotifyReport", "ReportChargingProfiles",
}

// stationReportsMax is the most bytes of a charger's reports that are stored. The oldest are
// deleted first.
const stationReportsMax = 256 << 10

// noteStationReport stores a report message. The caller holds mu.
func (c *charger) noteStationReport(
	action string,
	body json.RawMessage,
	now time.Time,
) {
	if slices.Contains(reportCalls, action) {
		c.keepReport(action, body, now)
	}
}

// keepReport stores a charger's message for people to read. The caller holds mu.
func (c *charger) keepReport(action string, body json.RawMessage, now time.Time) {
	if len(body) > stationReportsMax {
		return
	}

	c.stationReports = append(c.stationReports, bridge.Report{At: now, Action: action, Body: slices.Clone(body)})
	size := 0
	for i, r := range slices.Backward(c.stationReports) {
		size += len(r.Body)
		if size > stationReportsMax {
			c.stationReports = slices.Clone(c.stationReports[i+1:])
			return
		}
	}
}

// showReports lists a charger's reports, the newest last.
func (b *Bridge) showReports(w http.ResponseWriter, r *http.Request) {
	c, ok := b.known(w, r)
	if !ok {
		return
	}

	c.mu.Lock()
	all := append([]bridge.Report{}, c.stationReports...)
	c.mu.Unlock()

	writeJSON(w, all)
}

// tag is an id tag's entry in a chargers' file.
type tag struct {
	status string
}

// tagStates are the states of a tag in a chargers' file, with the status that a charger receives.
var tagStates = map[string]string{
	"accepted": accepted,
	"blocked":  "Blocked",
	"expired":  "Expired",
}

// tagMax is the longest tag: 20 characters in OCPP 1.6, 36 in 2.0.1.
const tagMax = 36

// parseTag reads a tag's line, as in: tag 04A2B3 blocked.
func parseTag(fields []string) (string, tag, error) {
	known := len(fields) == 3 && len(fields[1]) <= tagMax

	var t tag
	if known {
		t.status = tagStates[fields[2]]
	}
	if t.status == "" {
		return "", t, flex.Fail(
			flex.Invalid,
			"a tag's line is: tag, its id of at most 36 characters, and accepted, blocked or expired",
		)
	}

	return strings.ToLower(fields[1]), t, nil
}

// tagInfo returns the status of an id tag for a charger. If the chargers' file has no tags, all are
// accepted; otherwise tags that are not in it are invalid. Case does not matter.
func (b *Bridge) tagInfo(id string) tagInfo {
	if b.Chargers == nil {
		return tagInfo{accepted}
	}

	status, known := b.Chargers.tag(id, b.Now())
	if !known {
		return tagInfo{accepted}
	}

	return tagInfo{status}
}

// tag returns a tag's status. It returns false if the file has no tags at all.
func (f *ChargersFile) tag(id string, now time.Time) (status string, hasTags bool) {
	f.line("", now) // reads the file again if it changed
	f.mu.Lock()
	defer f.mu.Unlock()

	t, known := f.tags[strings.ToLower(id)]
	if !known {
		t.status = "Invalid"
	}

	return t.status, len(f.tags) > 0
}

// showTags answers with the tags of the chargers' file, by id.
func (b *Bridge) showTags(w http.ResponseWriter, _ *http.Request) {
	all := []bridge.Tag{}
	if f := b.Chargers; f != nil {
		f.line("", b.Now()) // reads the file again if it changed
		f.mu.Lock()
		for _, id := range slices.Sorted(maps.Keys(f.tags)) {
			all = append(all, bridge.Tag{ID: id, Status: f.tags[id].status})
		}
		f.mu.Unlock()
	}

	writeJSON(w, all)
}
