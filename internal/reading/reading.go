package reading

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Service accepts readings.
type Service struct {
	DB     *store.DB
	Retain time.Duration // retention of readings; Retention if it is zero
}

// BatchMax is the most readings that one call of Take stores in one transaction. The transport
// splits a longer request into batches.
const BatchMax = 10_000

// Store checks a batch and stores the readings that are accepted, in one transaction. It
// returns one verdict for each reading, in the batch's order. Of readings for the same time,
// asset and label the last one counts; one that differs from the stored one is a correction.
func (s *Service) Store(
	ctx context.Context,
	org flex.OrgID,
	batch []Input,
) ([]Verdict, error) {
	if len(batch) > BatchMax {
		return nil, flex.Fail(
			flex.TooLarge,
			"a batch holds at most %d readings",
			BatchMax,
		)
	}

	verdicts := make([]Verdict, len(batch))
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		in := intake{
			tx:       tx,
			batch:    batch,
			verdicts: verdicts,
		}

		return in.run(ctx)
	})
	if store.OrgMissing(err) {
		// The organisation has moved to another cell since the request was accepted. A
		// repeated request is routed there.
		err = &flex.Moving{Cause: err}
	}
	if err != nil {
		return nil, fmt.Errorf("keep readings: %w", err)
	}

	return verdicts, nil
}

// intake is the processing of one batch.
type intake struct {
	tx         *store.Tx
	batch      []Input
	verdicts   []Verdict
	parsed     []flex.Reading // by position in the batch; valid if Judge accepted it
	candidates []int          // positions in the batch that are not refused or held back so far
	earlier    map[int][]int  // by the position of the last reading of a key, those before it
	ratings    map[flex.AssetID]store.Rating
	held       []flex.HeldReading // what is held back
	// how many wait from earlier batches; nil until it was counted
	waiting *int
}

// run checks the readings and stores those that are accepted.
func (in *intake) run(ctx context.Context) error {
	in.checkEach()

	if err := in.checkOwnership(ctx); err != nil {
		return err
	}

	in.keepLatest()

	if err := in.checkPlausible(ctx); err != nil {
		return err
	}
	if err := in.checkRegisters(ctx); err != nil {
		return err
	}

	if err := in.tx.HoldReadings(ctx, in.held); err != nil {
		return err
	}

	rs := make([]flex.Reading, 0, len(in.candidates))
	for _, i := range in.candidates {
		if in.verdicts[i].Accepted() {
			rs = append(rs, in.parsed[i])
		}
	}

	if err := in.tx.PutReadings(ctx, rs); err != nil {
		return err
	}
	if err := in.countRefused(ctx); err != nil {
		return err
	}

	return in.notify(ctx, rs)
}

// notify marks the work that depends on new readings: settlement, and plans that depend on the
// energy that a charger delivered or a battery stores.
func (in *intake) notify(ctx context.Context, rs []flex.Reading) error {
	if slices.ContainsFunc(rs, func(r flex.Reading) bool {
		return settles[r.Label]
	}) {
		// the background jobs find out which of them was missing
		in.tx.Wake(store.WakeSettle)
	}

	now := in.tx.Now()
	err := in.tx.MarkDue(
		ctx,
		assetsRead(rs, now.Add(-freshTime), flex.ChargerEnergy)...,
	)
	if err != nil {
		return err
	}

	charge := []flex.Label{flex.BatteryStateOfCharge, flex.BatteryStoredEnergy}
	err = in.tx.MarkDischarging(
		ctx,
		assetsRead(rs, now.Add(-freshCharge), charge...)...,
	)
	if err != nil {
		return err
	}

	return in.tx.MarkRead(
		ctx,
		assetsRead(
			rs,
			now.Add(-freshCharge),
			append(charge, flex.HeatLabels...)...,
		)...,
	)
}

// settles is the set of labels that sessions and flex events are settled on.
var settles = func() map[flex.Label]bool {
	in := map[flex.Label]bool{}
	for _, m := range []settle.Metering{settle.Asset, settle.Boundary} {
		for _, l := range settle.Labels(m) {
			in[l] = true
		}
	}
	return in
}()

// The greatest age of a reading that is relevant to a plan.
const (
	freshTime   = 36 * time.Hour // of a car that is plugged in
	freshCharge = 2 * time.Hour  // of a battery
)

// assetsRead returns the assets that have a reading of one of the labels that ends after an
// instant.
func assetsRead(
	rs []flex.Reading,
	since time.Time,
	labels ...flex.Label,
) []flex.AssetID {
	known := map[flex.AssetID]bool{}

	var assets []flex.AssetID
	for _, r := range rs {
		if slices.Contains(labels, r.Label) && r.To.After(since) &&
			!known[r.AssetID] {
			known[r.AssetID] = true
			assets = append(assets, r.AssetID)
		}
	}

	return assets
}

func (in *intake) checkEach() {
	now := in.tx.Now()

	in.parsed, in.candidates = make([]flex.Reading, len(in.batch)), make(
		[]int,
		0,
		len(in.batch),
	)
	for i, g := range in.batch {
		in.parsed[i], in.verdicts[i] = Judge(g, now)
		if in.verdicts[i].Accepted() {
			in.candidates = append(in.candidates, i)
		}
	}
}

// checkOwnership refuses readings of assets that are not the organisation's.
func (in *intake) checkOwnership(ctx context.Context) error {
	ids := make([]flex.AssetID, 0, len(in.candidates))
	for _, i := range in.candidates {
		ids = append(ids, in.parsed[i].AssetID)
	}

	own, err := in.tx.OwnAssets(ctx, ids)
	if err != nil {
		return err
	}

	in.ratings = own
	in.candidates = slices.DeleteFunc(in.candidates, func(i int) bool {
		if _, isOwn := own[in.parsed[i].AssetID]; isOwn {
			return false
		}
		in.verdicts[i] = NotFound
		return true
	})

	return nil
}

// key identifies a stored reading.
type key struct {
	asset flex.AssetID
	label flex.Label
	at    int64
}

func keyOf(r flex.Reading) key {
	return key{r.AssetID, r.Label, r.KeptAt().UnixMicro()}
}

// keepLatest leaves only the last of the readings with the same key. The earlier ones are
// accepted too: they counted until they were corrected.
func (in *intake) keepLatest() {
	last := make(map[key]int, len(in.candidates))
	for _, i := range in.candidates {
		last[keyOf(in.parsed[i])] = i
	}

	if len(last) == len(in.candidates) {
		return
	}

	in.earlier = map[int][]int{}
	in.candidates = slices.DeleteFunc(in.candidates, func(i int) bool {
		n := last[keyOf(in.parsed[i])]
		if n != i {
			in.earlier[n] = append(in.earlier[n], i)
		}

		return n != i
	})
}

// substitute replaces a reading that is refused or held back by the newest earlier one with
// the same key that fits, as if the two had arrived one after the other. It returns its
// position, and false if there is none.
func (in *intake) substitute(
	at int,
	fits func(flex.Reading) bool,
) (int, bool) {
	for _, i := range slices.Backward(in.earlier[at]) {
		if fits(in.parsed[i]) {
			in.candidates = append(in.candidates, i)
			return i, true
		}
	}

	return at, false
}

// checkRegisters checks readings of registers against the marks before and after them, in the store
// and in the same batch.
func (in *intake) checkRegisters(ctx context.Context) error {
	byRegister := map[store.Register][]int{}
	var order []store.Register

	for _, i := range in.candidates {
		if r := in.parsed[i]; r.Label.Register() {
			k := store.Register{AssetID: r.AssetID, Label: r.Label}
			if byRegister[k] == nil {
				order = append(order, k)
			}
			byRegister[k] = append(byRegister[k], i)
		}
	}

	if len(order) == 0 {
		return nil
	}

	assets := make([]flex.AssetID, len(order))
	for i, k := range order {
		assets[i] = k.AssetID
	}

	newest, err := in.tx.LockNewestMarks(ctx, assets)
	if err != nil {
		return err
	}

	resets, err := in.tx.Resets(ctx, assets)
	if err != nil {
		return err
	}

	for _, k := range order {
		positions := byRegister[k]
		slices.SortStableFunc(positions, func(a, b int) int {
			return in.parsed[a].To.Compare(in.parsed[b].To)
		})
		err := in.register(ctx, k, positions, newest, resets[k])
		if err != nil {
			return err
		}
	}

	return nil
}

// register checks the readings of one register, in the order of time.
func (in *intake) register(
	ctx context.Context,
	k store.Register,
	positions []int,
	newest map[store.Register]store.Mark,
	resets []time.Time,
) error {
	var last *Mark // the last one accepted of this batch
	for _, i := range positions {
		r := in.parsed[i]
		before, after, err := in.around(ctx, k, r.To, newest)
		if err != nil {
			return err
		}

		if last != nil && (before == nil || !last.At.Before(before.At)) {
			before = last
		}

		before, after = sameMeter(r.To, before, after, resets)

		if err := in.judgeRegister(ctx, i, before, after); err != nil {
			return err
		}

		counts := in.verdicts[i].Accepted()
		if !counts {
			i, counts = in.substitute(i, func(r flex.Reading) bool {
				return in.follows(r, before, after)
			})
		}

		if counts {
			last = &Mark{r.To, in.parsed[i].Value}
		}
	}

	return nil
}

// follows reports whether a register's reading is consistent with the marks before and after
// it.
func (in *intake) follows(r flex.Reading, before, after *Mark) bool {
	if before != nil {
		fell := r.Value < before.Value
		if fell || suspectRise(r, in.ratings[r.AssetID], *before).reason != "" {
			return false
		}
	}

	return JudgeRegister(r, before, after).Accepted()
}

// judgeRegister holds back a register's reading that is implausible after the mark before it,
// and refuses one that contradicts a later mark.
func (in *intake) judgeRegister(
	ctx context.Context,
	at int,
	before, after *Mark,
) error {
	r := in.parsed[at]
	if before != nil && r.Value < before.Value {
		return in.holdBack(ctx, at, suspectFall(r, *before))
	}

	if before != nil {
		s := suspectRise(r, in.ratings[r.AssetID], *before)
		if s.reason != "" {
			return in.holdBack(ctx, at, s)
		}
	}

	in.verdicts[at] = JudgeRegister(r, before, after)

	return nil
}

// sameMeter removes neighbours of a register's reading that another meter counted: there was a
// reset between.
func sameMeter(
	at time.Time,
	before, after *Mark,
	resets []time.Time,
) (sameBefore, sameAfter *Mark) {
	for _, reset := range resets {
		if before != nil && reset.After(before.At) && !reset.After(at) {
			before = nil
		}

		if after != nil && reset.After(at) && !reset.After(after.At) {
			after = nil
		}
	}

	return before, after
}

// around returns the stored marks before and after an instant. Usually the newest mark is
// before it, and there is none after.
func (in *intake) around(
	ctx context.Context,
	k store.Register,
	at time.Time,
	newest map[store.Register]store.Mark,
) (before, after *Mark, err error) {
	top, known := newest[k]
	if !known {
		return nil, nil, nil
	}

	if top.At.Before(at) {
		return &Mark{top.At, top.Value}, nil, nil
	}

	b, a, err := in.tx.MarksAround(ctx, k, at, int(MaxAge/(24*time.Hour))+2)
	if err != nil {
		return nil, nil, err
	}

	if b != nil {
		before = &Mark{b.At, b.Value}
	}

	if a != nil {
		after = &Mark{a.At, a.Value}
	}

	return before, after, nil
}
