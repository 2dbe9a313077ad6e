package store_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Readings that were there before they had tables by the week stay, and are corrected where
// they lie; later ones find their weeks, and one that no week was made for is kept all the
// same.
func TestReadings_ByWeek(t *testing.T) {
	url := storetest.Postgres(t)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	options := store.Options{Now: func() time.Time { return now }}
	db := storetest.Open(t, url, options)
	seed := storetest.NewSeed(t, db, url)
	asset := seed.Asset(seed.Site(), flex.Charger, 0)
	for _, statement := range []string{ // as it was
		`DROP TABLE reading CASCADE`, `DROP FUNCTION make_reading_week(bigint)`, `DROP FUNCTION drop_reading_week(text)`,
		`CREATE TABLE reading (at BIGINT NOT NULL, asset_id UUID NOT NULL, label SMALLINT NOT NULL, seconds INTEGER NOT NULL,
			value BIGINT NOT NULL, known_at BIGINT NOT NULL, PRIMARY KEY (at, asset_id, label))`,
		`CREATE INDEX reading_day ON reading ((at / 86400000000), asset_id, label, at) WHERE label >= 10`,
		`CREATE FUNCTION reckoned_reading_corrected() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`,
		`CREATE FUNCTION event_reading_corrected() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`,
		`CREATE TRIGGER reading_corrected AFTER UPDATE ON reading FOR EACH ROW WHEN (OLD.known_at < NEW.known_at) EXECUTE FUNCTION reading_corrected()`,
		`CREATE TRIGGER reckoned_reading_corrected AFTER UPDATE ON reading FOR EACH ROW EXECUTE FUNCTION reckoned_reading_corrected()`,
		`CREATE TRIGGER event_reading_corrected AFTER UPDATE ON reading FOR EACH ROW EXECUTE FUNCTION event_reading_corrected()`,
	} {
		seed.Exec(statement)
	}
	read := func(at time.Time, value flex.Micro) flex.Reading {
		return flex.Reading{AssetID: asset, Span: flex.PeriodAt(at).Span(), Label: flex.ChargerEnergy, Value: value}
	}

	old := now.Add(-20 * 24 * time.Hour)
	seed.Exec(`INSERT INTO reading VALUES ($1, $2, 1, 1800, 5, 1)`, old.UnixMicro(), asset.Bytes())
	text, err := os.ReadFile("migration/00080_reading_part.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.Exec(t, url+"&default_query_exec_mode=simple_protocol", string(text)); err != nil {
		t.Fatal(err)
	}

	db = storetest.Open(t, url, options)
	put := func(rs ...flex.Reading) {
		t.Helper()
		if err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error { return tx.PutReadings(context.Background(), rs) }); err != nil {
			t.Fatal(err)
		}
	}

	tables := func() string {
		return strings.Join(seed.Strings(`SELECT tableoid::regclass::text || '=' || count(*) FROM reading GROUP BY tableoid ORDER BY 1`), " ")
	}

	far := now.Add(5 * 365 * 24 * time.Hour) // a clock that was turned
	put(read(old, 7), read(old.Add(time.Hour), 1), read(now, 2), read(now.Add(7*24*time.Hour), 3))
	now = now.Add(time.Minute)
	put(read(now, 4), read(far, 5))
	const want = "reading_before=2 reading_w2930=1 reading_w2931=1 reading_w3191=1"
	if got := tables(); got != want {
		t.Errorf("readings lie in %s, want %s", got, want)
	}
	if n := seed.Count(`SELECT count(*) FROM reading_history`); n != 2 {
		t.Errorf("%d corrections have their history, want 2", n)
	}

	seed.Exec(`INSERT INTO reading VALUES ($1, $2, 1, 1800, 5, 1)`, far.Add(365*24*time.Hour).UnixMicro(), asset.Bytes())
	put(read(far.Add(365*24*time.Hour), 6))
	if got := tables(); got != strings.Replace(want, " reading_w2930", " reading_rest=1 reading_w2930", 1) {
		t.Errorf("with one outside, readings lie in %s", got)
	}

	err = db.WriteAll(t.Context(), func(all *store.All) error {
		if err := all.MakePartitions(t.Context(), flex.Span{From: now, To: now.Add(14 * 24 * time.Hour)}); err != nil {
			return err
		}
		_, err := all.DropReadings(t.Context(), now.Add(30*24*time.Hour), 100)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := tables(); got != "reading_rest=1 reading_w3191=1" {
		t.Errorf("after all that is old was forgotten, readings lie in %s", got)
	}
}

// A table of a week that somebody else is just making has its row type before it can be seen.
// The readings are kept all the same.
func TestReadings_WeekMadeElsewhere(t *testing.T) {
	url := storetest.Postgres(t)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
	seed := storetest.NewSeed(t, db, url)
	asset := seed.Asset(seed.Site(), flex.Charger, 0)
	seed.Exec(`CREATE TYPE reading_w2930 AS ENUM ()`)
	err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
		return tx.PutReadings(context.Background(), []flex.Reading{{AssetID: asset, Span: flex.PeriodAt(now).Span(), Label: flex.ChargerEnergy, Value: 1}})
	})
	if n := seed.Count(`SELECT count(*) FROM reading`); err != nil || n != 1 {
		t.Errorf("%d readings kept, %v", n, err)
	}
}
