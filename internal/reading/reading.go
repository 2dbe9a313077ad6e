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

// Service takes readings in.
type Service struct {
	DB     *store.DB
	Retain time.Duration // how long readings are kept; KeptFor if it is zero
}

// BatchMax is the number of readings that one call of Take keeps in one transaction. The
// transport cuts a longer request into batches.
const BatchMax = 10_000

// Take judges a batch and keeps what may stand, all in one transaction. There is one
// verdict for each reading, in the batch's order. Of readings for the same time, asset and
// label the last one counts; one that differs from what is kept already is a correction.
func (s *Service) Take(
	ctx context.Context,
	org flex.OrgID,
	batch []Given,
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

		return in.take(ctx)
	})
	if store.OrgMissing(err) {
		// It has moved to another cell since the request was let in: whoever asks again is sent there.
		err = &flex.Moving{Cause: err}
	}
	if err != nil {
		return nil, fmt.Errorf("keep readings: %w", err)
	}

	return verdicts, nil
}

// intake is one batch on its way in.
type intake struct {
	tx       *store.Tx
	batch    []Given
	verdicts []Verdict
	kept     []flex.Reading // judged by itself, by position in the batch
	stand    []int          // positions in the batch that may still stand
	earlier  map[int][]int  // of the last of a key, those before it
	ratings  map[flex.AssetID]store.Rating
	held     []flex.HeldReading // what is held back
	// how many were held back before; nil until it was asked
	waiting *int
}

// take judges the readings and keeps those that are accepted.
func (in *intake) take(ctx context.Context) error {
	in.judge()

	if err := in.own(ctx); err != nil {
		return err
	}

	in.lastOfEach()

	if err := in.plausible(ctx); err != nil {
		return err
	}
	if err := in.registers(ctx); err != nil {
		return err
	}

	if err := in.tx.HoldReadings(ctx, in.held); err != nil {
		return err
	}

	rs := make([]flex.Reading, 0, len(in.stand))
	for _, i := range in.stand {
		if in.verdicts[i].Accepted() {
			rs = append(rs, in.kept[i])
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

// notify has the work done that new readings are the reason for: settlement, and plans that
// stand on what a charger delivered or a battery holds.
func (in *intake) notify(ctx context.Context, rs []flex.Reading) error {
	if slices.ContainsFunc(rs, func(r flex.Reading) bool {
		return settles[r.Label]
	}) {
		// which of them was waited for, the background jobs find out
		in.tx.Wake(store.WakeSettle)
	}

	now := in.tx.Now()
	err := in.tx.MarkDue(
		ctx,
		telling(rs, now.Add(-freshTime), flex.ChargerEnergy)...,
	)
	if err != nil {
		return err
	}

	charge := []flex.Label{flex.BatteryStateOfCharge, flex.BatteryStoredEnergy}
	err = in.tx.MarkDischarging(
		ctx,
		telling(rs, now.Add(-freshCharge), charge...)...,
	)
	if err != nil {
		return err
	}

	return in.tx.MarkRead(
		ctx,
		telling(
			rs,
			now.Add(-freshCharge),
			append(charge, flex.HeatLabels...)...,
		)...,
	)
}

// settles holds the labels that sessions and flex events are settled on.
var settles = func() map[flex.Label]bool {
	in := map[flex.Label]bool{}
	for _, m := range []settle.Metering{settle.Asset, settle.Boundary} {
		for _, l := range settle.Labels(m) {
			in[l] = true
		}
	}
	return in
}()

// How old a reading may be and still matter to a plan.
const (
	freshTime   = 36 * time.Hour // of a car that is plugged in
	freshCharge = 2 * time.Hour  // of a battery
)

// telling lists the assets that readings of some labels tell of since an instant: how far a
// charge has come, or what a battery holds.
func telling(
	rs []flex.Reading,
	since time.Time,
	labels ...flex.Label,
) []flex.AssetID {
	seen := map[flex.AssetID]bool{}

	var assets []flex.AssetID
	for _, r := range rs {
		if slices.Contains(labels, r.Label) && r.To.After(since) &&
			!seen[r.AssetID] {
			seen[r.AssetID] = true
			assets = append(assets, r.AssetID)
		}
	}

	return assets
}

func (in *intake) judge() {
	now := in.tx.Now()

	in.kept, in.stand = make([]flex.Reading, len(in.batch)), make(
		[]int,
		0,
		len(in.batch),
	)
	for i, g := range in.batch {
		in.kept[i], in.verdicts[i] = Judge(g, now)
		if in.verdicts[i].Accepted() {
			in.stand = append(in.stand, i)
		}
	}
}

// own refuses readings of assets that are not the organisation's.
func (in *intake) own(ctx context.Context) error {
	ids := make([]flex.AssetID, 0, len(in.stand))
	for _, i := range in.stand {
		ids = append(ids, in.kept[i].AssetID)
	}

	own, err := in.tx.OwnAssets(ctx, ids)
	if err != nil {
		return err
	}

	in.ratings = own
	in.stand = slices.DeleteFunc(in.stand, func(i int) bool {
		if _, ours := own[in.kept[i].AssetID]; ours {
			return false
		}
		in.verdicts[i] = NotFound
		return true
	})

	return nil
}

// key is what a reading is kept by.
type key struct {
	asset flex.AssetID
	label flex.Label
	at    int64
}

func keyOf(r flex.Reading) key {
	return key{r.AssetID, r.Label, r.KeptAt().UnixMicro()}
}

// lastOfEach leaves of readings with the same key the last one. The earlier ones are
// accepted too: they stood until they were corrected.
func (in *intake) lastOfEach() {
	last := make(map[key]int, len(in.stand))
	for _, i := range in.stand {
		last[keyOf(in.kept[i])] = i
	}

	if len(last) == len(in.stand) {
		return
	}

	in.earlier = map[int][]int{}
	in.stand = slices.DeleteFunc(in.stand, func(i int) bool {
		n := last[keyOf(in.kept[i])]
		if n != i {
			in.earlier[n] = append(in.earlier[n], i)
		}

		return n != i
	})
}

// letStand has, in place of a reading that does not stand, the newest before it of the same key stand that fits, as
// if the two had come one by one. It returns its position, and false if there is none.
func (in *intake) letStand(
	at int,
	fits func(flex.Reading) bool,
) (int, bool) {
	for _, i := range slices.Backward(in.earlier[at]) {
		if fits(in.kept[i]) {
			in.stand = append(in.stand, i)
			return i, true
		}
	}

	return at, false
}

// registers judges readings of registers against the marks before and after them, those in
// the store and those of the same batch.
func (in *intake) registers(ctx context.Context) error {
	byRegister := map[store.Register][]int{}
	var order []store.Register

	for _, i := range in.stand {
		if r := in.kept[i]; r.Label.Register() {
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
			return in.kept[a].To.Compare(in.kept[b].To)
		})
		err := in.register(ctx, k, positions, newest, resets[k])
		if err != nil {
			return err
		}
	}

	return nil
}

// register judges the readings of one register, in the order of time.
func (in *intake) register(
	ctx context.Context,
	k store.Register,
	positions []int,
	newest map[store.Register]store.Mark,
	resets []time.Time,
) error {
	var last *Mark // the last one accepted of this batch
	for _, i := range positions {
		r := in.kept[i]
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
			i, counts = in.letStand(i, func(r flex.Reading) bool {
				return in.follows(r, before, after)
			})
		}

		if counts {
			last = &Mark{r.To, in.kept[i].Value}
		}
	}

	return nil
}

// follows reports whether a register's reading may stand between the marks beside it.
func (in *intake) follows(r flex.Reading, before, after *Mark) bool {
	if before != nil {
		fell := r.Value < before.Value
		if fell || suspectRise(r, in.ratings[r.AssetID], *before).reason != "" {
			return false
		}
	}

	return JudgeRegister(r, before, after).Accepted()
}

// judgeRegister holds back what a register cannot show after the mark before it, and refuses
// what it cannot show before a later one.
func (in *intake) judgeRegister(
	ctx context.Context,
	at int,
	before, after *Mark,
) error {
	r := in.kept[at]
	if before != nil && r.Value < before.Value {
		return in.hold(ctx, at, suspectFall(r, *before))
	}

	if before != nil {
		s := suspectRise(r, in.ratings[r.AssetID], *before)
		if s.reason != "" {
			return in.hold(ctx, at, s)
		}
	}

	in.verdicts[at] = JudgeRegister(r, before, after)

	return nil
}

// sameMeter leaves out the neighbours of a register's reading that another meter counted: a
// reset lies between.
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

// around finds the stored marks beside an instant: mostly the newest is before it, and
// there is none after.
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
