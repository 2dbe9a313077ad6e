package store_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A release before migration 655 looks for the flex event of a pause that was put off, and leaves the pause's mark: it is put off no
// longer.
func TestPutOff_PauseDoneByOlderRelease(t *testing.T) {
	eachPutOff(t, func(p *putOffPause) {
		p.write(func(tx *store.Tx) error { return p.putOff(tx, time.Hour) })
		if n := p.left(); n != 1 {
			t.Errorf("%d are put off", n)
		}

		p.Exec(`UPDATE pause SET detected = TRUE`) // as TakePauses was
		if n := p.left(); n != 0 {
			t.Errorf("once it is looked for, %d are put off", n)
		}
	})
}

// A pause that was put off and is due again is put off once more while another process looks what is put off: it is still listed.
func TestPutOff_AgainBeside(t *testing.T) {
	const locked = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	eachPutOff(t, func(p *putOffPause) {
		p.write(func(tx *store.Tx) error { return p.putOff(tx, time.Hour) })
		p.Exec(`UPDATE pause SET detect_at = 1`) // as a mark that it is due at once

		beside := make(chan int, 1)
		p.write(func(tx *store.Tx) error {
			if err := p.putOff(tx, 2*time.Hour); err != nil {
				return err
			}

			go func() { beside <- p.left() }()
			for p.db.Engine() == "postgres" && len(beside) == 0 && p.Count(locked) == 0 {
				runtime.Gosched()
			}

			return nil
		})

		if n := <-beside; n != 1 {
			t.Errorf("the other process finds %d put off", n)
		}
		if n := p.left(); n != 1 {
			t.Errorf("in the end %d are put off", n)
		}
	})
}

// putOffPause is a pause that is over, and whose flex event cannot be looked for.
type putOffPause struct {
	*testing.T
	*storetest.Seed
	db *store.DB
	id store.PauseID
}

// eachPutOff runs a test on both engines.
func eachPutOff(t *testing.T, test func(*putOffPause)) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		p := &putOffPause{
			T:    t,
			Seed: storetest.NewSeed(t, db, url),
			db:   db,
			id:   store.PauseID{15: 7},
		}

		begin := time.Now().Add(-2 * time.Hour)
		p.Exec(`INSERT INTO pause (id, asset_id, site_id, org_id, from_at, to_at, saved, made_at) VALUES ($1, $2, $3, $4, $5, $6, 0, $5)`,
			p.id.Bytes(), flex.AssetID{1}.Bytes(), flex.SiteID{1}.Bytes(), p.Org.Bytes(), begin.UnixMicro(), begin.Add(time.Hour).UnixMicro())

		test(p)
	})
}

func (p *putOffPause) write(do func(*store.Tx) error) {
	p.Helper()
	if err := p.db.Write(context.Background(), p.Org, do); err != nil {
		p.Fatal(err)
	}
}

// putOff puts the pause off, and fails unless it was due.
func (p *putOffPause) putOff(tx *store.Tx, after time.Duration) error {
	was, err := tx.PutOff(context.Background(), store.PutOffItem{
		Kind:  store.PutOffPause,
		ID:    p.id,
		Until: tx.Now().Add(after),
		Error: "planted",
	})
	if err == nil && !was {
		p.Error("the pause is not put off")
	}

	return err
}

// left is how many are put off. It may be called in another goroutine.
func (p *putOffPause) left() (n int) {
	err := p.db.Write(context.Background(), p.Org, func(tx *store.Tx) error {
		var err error
		_, n, err = tx.LeftPutOff(context.Background(), store.PutOffPause, 5)
		return err
	})
	if err != nil {
		p.Error(err)
	}

	return n
}
