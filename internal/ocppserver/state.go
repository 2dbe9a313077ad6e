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
	// stateSuffix is what the files of a state directory end in, behind the charger's id.
	stateSuffix = ".charger.json"
	// savingMax is how many files are written at once: each takes a thread of the system's.
	savingMax = 8
	// stateKept is how long the file of a charger that says nothing is kept.
	stateKept = 60 * 24 * time.Hour
)

// savedCharger is what the bridge must know of a charger after it was ended or killed. The
// schedule is not part of it: flexd shows the one in force.
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

// savedUpstream is what is to be known of a charger's platform. Messages that were not answered
// are not part of it: the charger says them again.
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

// savedStart is a StartTransaction to its last digit, so that it is known when it is repeated.
type savedStart struct {
	Connector int       `json:"connector"`
	Tag       string    `json:"tag"`
	Meter     float64   `json:"meter"`
	Step      float64   `json:"step"`
	At        time.Time `json:"at"`
}

// statePath is the file of a charger.
func (b *Bridge) statePath(id string) string {
	return filepath.Join(b.State, id+stateSuffix)
}

// keep saves a charger, if it is one of flexd's and anything has changed. A file is written
// beside the old one and replaces it, so that there is always a whole one. The caller
// holds mu.
func (c *charger) keep() {
	if c.b.State == "" || !c.known() && !c.up.named() {
		return
	}

	b, err := json.Marshal(c.saved())
	if err == nil {
		sum := sha256.Sum256(b)
		if sum == c.kept {
			return
		}

		c.b.saving <- struct{}{}
		err = replaceFile(c.b.statePath(c.id), b)
		<-c.b.saving
		if err == nil {
			c.kept = sum
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

// save is keep for who does not hold mu.
func (c *charger) save() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep()
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

func (c *charger) saved() savedCharger {
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
		Whole:        c.whole,
	}

	if u := c.up; u.named() {
		answered := slices.DeleteFunc(slices.Clone(u.queue), func(e *queuedMessage) bool {
			return !e.closed
		})
		s.Upstream = &savedUpstream{answered, u.numbers, u.values, u.limits}
	}

	for _, number := range c.numbers() {
		s.Connectors = append(s.Connectors, c.connectors[number].saved())
	}

	return s
}

func (n *connector) saved() savedConnector {
	s := savedConnector{
		Number:      n.number,
		Asset:       n.asset,
		Status:      n.status,
		Heard:       n.heard,
		Plugged:     n.plugged,
		Since:       n.since,
		Doubtful:    n.doubtful,
		Reported:    n.reported,
		ReportedAt:  n.reportedAt,
		GoneAt:      n.goneAt,
		BackAt:      n.backAt,
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

// takeOver is restore with the charger's mu.
func (c *charger) takeOver(s savedCharger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restore(s)
}

// restore takes over what was saved of a charger.
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
	c.whole = s.Whole

	if c.up.named() && s.Upstream != nil {
		c.up.restore(*s.Upstream)
	}

	for _, saved := range s.Connectors {
		if n := c.connector(saved.Number); n != nil {
			n.restore(saved)
			if n.txName == "" { // else the number is not one of a row
				c.b.tookNumber(n.lastTx)
			}
		}
	}
}

// restorePlug takes over what was saved of the cars at a connector, and of the last one's
// profile. An earlier release did not save when one was reported: not before it came.
func (n *connector) restorePlug(s savedConnector) {
	n.reportedAt = s.ReportedAt
	if n.reportedAt.IsZero() {
		n.reportedAt = s.Since
	}

	n.goneAt = s.GoneAt
	n.backAt = s.BackAt
	n.another = s.Another
	n.outlet = s.Outlet
	n.nextAt = s.NextAt
	n.profile = s.Profile
}

// restore takes over what was saved of a connector. Its asset is asked for again.
func (n *connector) restore(s savedConnector) {
	n.asset = s.Asset
	n.stored = !s.Asset.ID.IsZero()
	n.status = s.Status
	n.heard = s.Heard
	n.plugged = s.Plugged
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

// restore takes over what was saved of a platform.
func (u *upstream) restore(s savedUpstream) {
	for _, e := range s.Errands {
		e.ended = make(chan struct{})
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

// numbersAhead is how far the bridge's own numbers of transactions may be ahead of the clock.
const numbersAhead = 1_000_000

// tookNumber notes a transaction's number, so that no other has it. A platform's may be any:
// after the largest there would be none that a charger can read.
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

// load takes up the chargers of the state directory. A file that cannot be read is named in
// the log and passed over: its charger restarts.
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
		c.takeOver(s)
		c.wake()
	}

	return nil
}

// readState reads what was saved of a charger.
func readState(path string) (savedCharger, error) {
	var s savedCharger
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}

	err = json.Unmarshal(bytes.TrimSpace(text), &s)

	return s, err
}

// begin starts to work for a charger; nil if there are too many. The caller holds b.mu.
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

// dropState removes a charger's file.
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
