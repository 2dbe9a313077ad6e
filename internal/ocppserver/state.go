package ocppserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/bridge"
	"flexd/internal/flex"
)

const (
	// stateSuffix is the suffix of files in a state directory, after the charger's id.
	stateSuffix = ".charger.json"
	// savingMax is the most files that are written at once. Each write needs a thread of the
	// operating system.
	savingMax = 8
	// stateKept is how long the file of a silent charger is stored.
	stateKept = 60 * 24 * time.Hour
)

// savedCharger is the state of a charger that must survive a restart or crash of the bridge.
// The schedule is not part of it, because flexd shows the one in force.
type savedCharger struct {
	Model      savedModel       `json:"model"`
	Habit      capabilities     `json:"habit"`
	Clock      clock            `json:"clock"`
	Settings   settings         `json:"settings"`
	Unpaid     bool             `json:"unpaid,omitempty"`
	Late       []lateEvent      `json:"late,omitempty"`
	Reports    []report         `json:"reports,omitempty"`
	Callbacks  []callback       `json:"callbacks,omitempty"`
	Connectors []savedConnector `json:"connectors"`
	Whole      []int            `json:"whole,omitempty"`
	Upstream   *savedUpstream   `json:"upstream,omitempty"`

	Transactions []bridge.Transaction `json:"transactions,omitempty"`
}

// savedUpstream is the saved state of a charger's platform. Unanswered messages are not part
// of it, because the charger repeats them.
type savedUpstream struct {
	Errands []*queuedMessage  `json:"errands,omitempty"`
	Numbers []renumbered      `json:"numbers,omitempty"`
	Values  map[string]string `json:"values,omitempty"`
	Limits  []platformProfile `json:"limits,omitempty"`
}

type savedModel struct {
	Vendor   string `json:"vendor"`
	Model    string `json:"model"`
	Firmware string `json:"firmware"`
}

type savedConnector struct {
	Number   int                  `json:"number"`
	Asset    client.AssetResponse `json:"asset"`
	Status   string               `json:"status,omitempty"`
	Heard    time.Time            `json:"heard,omitzero"`
	Plugged  bool                 `json:"plugged,omitempty"`
	Since    time.Time            `json:"since,omitzero"`
	Doubtful time.Time            `json:"doubtful,omitzero"`
	Reported plugState            `json:"reported,omitempty"`

	ReportedAt time.Time `json:"reported_at,omitzero"`
	GoneAt     time.Time `json:"gone_at,omitzero"`
	BackAt     time.Time `json:"back_at,omitzero"`
	Another    bool      `json:"another,omitempty"`
	Outlet     int       `json:"outlet,omitempty"`
	NextAt     time.Time `json:"next_at,omitzero"`

	Transaction int `json:"transaction,omitempty"` // that runs
	// the last one's number
	Last      int        `json:"last,omitempty"`
	Name      string     `json:"name,omitempty"` // its text, with OCPP 2.0.1
	Start     savedStart `json:"start,omitzero"`
	StartedAt time.Time  `json:"started_at,omitzero"`

	Phases  int            `json:"phases,omitempty"`
	Pending []sample       `json:"pending,omitempty"`
	Meter   meter          `json:"meter"`
	Allowed []flex.Step    `json:"allowed,omitempty"`
	Newest  client.EventID `json:"newest,omitzero"`
	Profile int            `json:"profile,omitempty"` // that the charger took
}

// savedStart is a complete StartTransaction, so that a repetition of it is recognised.
type savedStart struct {
	Connector int       `json:"connector"`
	Tag       string    `json:"tag"`
	Meter     float64   `json:"meter"`
	Step      float64   `json:"step"`
	At        time.Time `json:"at"`
}

// statePath returns the path of a charger's file.
func (b *Bridge) statePath(id string) string {
	return filepath.Join(b.State, id+stateSuffix)
}

// saveState saves a charger if it has an asset and its state has changed. The file is written
// under another name and then renamed, so that there is always a complete one. The caller
// holds mu.
func (c *charger) saveState() {
	if c.b.State == "" || !c.known() && !c.up.hasPlatform() {
		return
	}

	b, err := json.Marshal(c.snapshot())
	if err == nil {
		sum := sha256.Sum256(b)
		if sum == c.savedHash {
			return
		}

		c.b.saving <- struct{}{}
		err = replaceFile(c.b.statePath(c.id), b)
		<-c.b.saving
		if err == nil {
			c.savedHash = sum
		}
	}

	if err != nil {
		c.b.Log.Error(
			"a charger's state is not saved: it would be lost if the bridge ended now",
			"charger",
			c.id,
			"err",
			err,
		)
	}
}

// save is saveState for callers that do not hold mu.
func (c *charger) save() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saveState()
}

// known reports whether one of the charger's connectors is an asset. The caller holds mu.
func (c *charger) known() bool {
	for _, n := range c.connectors {
		if !n.asset.ID.IsZero() {
			return true
		}
	}

	return false
}

func (c *charger) snapshot() savedCharger {
	s := savedCharger{
		Model:        savedModel(c.model),
		Habit:        c.capabilities,
		Clock:        c.clock,
		Settings:     c.settings,
		Unpaid:       c.noPassword,
		Late:         c.late,
		Reports:      append(slices.Clone(c.sending), c.reports...),
		Callbacks:    c.callbacks,
		Transactions: c.transactions,
		Whole:        c.allConnectorProfiles,
	}

	if u := c.up; u.hasPlatform() {
		unanswered := slices.DeleteFunc(slices.Clone(u.queue), func(e *queuedMessage) bool {
			return !e.isDone
		})
		s.Upstream = &savedUpstream{unanswered, u.numbers, u.values, u.limits}
	}

	for _, number := range c.numbers() {
		s.Connectors = append(s.Connectors, c.connectors[number].snapshot())
	}

	return s
}

func (n *connector) snapshot() savedConnector {
	s := savedConnector{
		Number:      n.number,
		Asset:       n.asset,
		Status:      n.status,
		Heard:       n.heard,
		Plugged:     n.pluggedIn,
		Since:       n.since,
		Doubtful:    n.doubtful,
		Reported:    n.reported,
		ReportedAt:  n.reportedAt,
		GoneAt:      n.unpluggedAt,
		BackAt:      n.repluggedAt,
		Another:     n.another,
		Outlet:      n.outlet,
		NextAt:      n.nextAt,
		Transaction: n.tx,
		Last:        n.lastTx,
		Name:        n.txName,
		StartedAt:   n.startedAt,
		Phases:      n.phases,
		Pending:     n.pending,
		Meter:       n.meter,
		Allowed:     n.allowed,
		Newest:      n.newest,
		Profile:     n.profile,
	}

	if !math.IsNaN(n.start.Meter.value) {
		s.Start = savedStart{
			int(n.start.Connector),
			n.start.Tag,
			n.start.Meter.value,
			n.start.Meter.step,
			n.start.At.Time,
		}
	}

	return s
}

// restoreFrom is restore with the charger's mu.
func (c *charger) restoreFrom(s savedCharger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restore(s)
}

// restore restores a charger's saved state.
func (c *charger) restore(s savedCharger) {
	c.model = bootNotification(s.Model)
	c.capabilities = s.Habit
	c.clock = s.Clock
	c.settings = s.Settings
	c.noPassword = s.Unpaid
	c.late = s.Late
	c.reports = s.Reports
	c.callbacks = s.Callbacks
	c.transactions = s.Transactions
	c.allConnectorProfiles = s.Whole

	if c.up.hasPlatform() && s.Upstream != nil {
		c.up.restore(*s.Upstream)
	}

	for _, saved := range s.Connectors {
		if n := c.connector(saved.Number); n != nil {
			n.restore(saved)
			if n.txName == "" { // with a textual id the number is a hash, not one of a sequence
				c.b.tookNumber(n.lastTx)
			}
		}
	}
}

// restorePlug restores the saved state of the cars at a connector, and the profile of the last
// one. Earlier releases did not save the time of a car's report; it then counts as reported
// when it came.
func (n *connector) restorePlug(s savedConnector) {
	n.reportedAt = s.ReportedAt
	if n.reportedAt.IsZero() {
		n.reportedAt = s.Since
	}

	n.unpluggedAt = s.GoneAt
	n.repluggedAt = s.BackAt
	n.another = s.Another
	n.outlet = s.Outlet
	n.nextAt = s.NextAt
	n.profile = s.Profile
}

// restore restores a connector's saved state. Its asset is requested from flexd again.
func (n *connector) restore(s savedConnector) {
	n.asset = s.Asset
	n.stored = !s.Asset.ID.IsZero()
	n.status = s.Status
	n.heard = s.Heard
	n.pluggedIn = s.Plugged
	n.since = s.Since
	n.doubtful = s.Doubtful
	n.reported = s.Reported
	n.restorePlug(s)

	n.tx = s.Transaction
	n.lastTx = s.Last
	n.txName = s.Name
	n.startedAt = s.StartedAt
	n.start = startTransaction{
		integer(s.Start.Connector),
		s.Start.Tag,
		decimal{s.Start.Meter, s.Start.Step},
		stamp{s.Start.At},
	}

	n.phases = s.Phases
	n.pending = s.Pending
	n.meter = s.Meter
	n.allowed = s.Allowed
	n.newest = s.Newest

	if first, _, ok := n.meter.extent(); ok {
		n.meter.touch(first)
	}
}

// restore restores a platform's saved state.
func (u *upstream) restore(s savedUpstream) {
	for _, e := range s.Errands {
		e.done = make(chan struct{})
		e.release()
		u.c.b.tookNumber(e.Local)
	}

	u.queue = s.Errands
	u.numbers = s.Numbers
	u.limits = s.Limits
	if s.Values != nil {
		u.values = s.Values
	}

	u.wake()
}

// numbersAhead is how far the bridge's own transaction numbers may be ahead of the clock.
const numbersAhead = 1_000_000

// tookNumber records a transaction number as used. A platform may use any number. The largest
// one is not recorded, because no valid number would follow it.
func (b *Bridge) tookNumber(tx int) {
	if int64(tx) > b.Now().Unix()+numbersAhead {
		return
	}

	for {
		last := b.lastTx.Load()
		if int64(tx) <= last || b.lastTx.CompareAndSwap(last, int64(tx)) {
			return
		}
	}
}

// load restores the chargers of the state directory. If a file cannot be read, that is logged
// and its charger starts without state.
func (b *Bridge) load() error {
	if b.State == "" {
		return nil
	}
	if err := os.MkdirAll(b.State, 0o700); err != nil {
		return fmt.Errorf("the state directory: %w", err)
	}

	files, err := filepath.Glob(filepath.Join(b.State, "*"+stateSuffix))
	if err != nil {
		return err
	}

	for _, path := range files {
		if err := b.loadOne(path); err != nil {
			b.Log.Error(
				"a charger's state cannot be read: it begins anew",
				"file",
				path,
				"err",
				err,
			)
		}
	}

	return nil
}

func (b *Bridge) loadOne(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if b.Now().Sub(info.ModTime()) > stateKept {
		return os.Remove(path)
	}

	s, err := readState(path)
	if err != nil {
		return err
	}

	id := strings.TrimSuffix(filepath.Base(path), stateSuffix)
	if !chargerID.MatchString(id) {
		return errors.New("its name is no charger's id")
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.begin(id); c != nil {
		c.restoreFrom(s)
		c.wake()
	}

	return nil
}

// readState reads a charger's file.
func readState(path string) (savedCharger, error) {
	var s savedCharger
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}

	err = json.Unmarshal(bytes.TrimSpace(text), &s)

	return s, err
}

// begin starts the worker of a charger. It returns nil if there are too many chargers. The
// caller holds b.mu.
func (b *Bridge) begin(id string) *charger {
	if len(b.chargers) >= ChargersMax || b.ctx.Err() != nil {
		return nil
	}

	ctx, stop := context.WithCancel(b.ctx)
	c := &charger{
		b:          b,
		id:         id,
		stop:       stop,
		wakeup:     make(chan struct{}, 1),
		failures:   b.failures[id],
		connectors: map[int]*connector{},
	}

	c.up = newUpstream(ctx, c)
	c.followPlatform()
	b.chargers[id] = c
	c.work(func() { c.run(ctx) })

	return c
}

// dropState deletes a charger's file.
func (b *Bridge) dropState(id string) {
	if b.State == "" {
		return
	}

	err := os.Remove(b.statePath(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.Log.Warn(
			"a charger's state was not removed",
			"charger",
			id,
			"err",
			err,
		)
	}
}
