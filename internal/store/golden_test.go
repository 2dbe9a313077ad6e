package store_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// golden is a database that the program of migration 97 wrote: an organisation that has set
// everything, with a plug session, a flex event that was settled twice, two withdrawals, events
// of an asset, caps and access to a cloud; and three that have set nothing, zeros, or a share.
const golden, goldenVersion = "testdata/golden_97.db.gz", 97

func goldenFile(t *testing.T) string {
	t.Helper()
	packed, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}

	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "golden.db")
	if err := os.WriteFile(path, plain, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eachGolden runs the test on the golden database as it is, and on its rows in PostgreSQL.
func eachGolden(t *testing.T, test func(t *testing.T, db *store.DB, url string)) {
	t.Helper()
	options := store.Options{Environment: flex.Sandbox, Now: func() time.Time { return time.Date(2025, 2, 12, 12, 0, 0, 0, time.UTC) }}
	t.Run("sqlite", func(t *testing.T) {
		url := "sqlite:" + goldenFile(t)
		test(t, storetest.Open(t, url, options), url)
	})
	t.Run("postgres", func(t *testing.T) {
		url := storetest.Postgres(t)
		fill := func(to *sql.DB) error { return copyRowsOf(t, goldenFile(t), to) }
		if err := store.Earlier(t.Context(), url, goldenVersion, fill); err != nil {
			t.Fatal(err)
		}
		test(t, storetest.Open(t, url, options), url)
	})
}

// copyRowsOf copies every row of a SQLite file to a PostgreSQL database with the same tables.
func copyRowsOf(t *testing.T, path string, to *sql.DB) error {
	from, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	defer from.Close()

	link, err := to.Conn(t.Context())
	if err != nil {
		return err
	}
	defer link.Close()
	if _, err := link.ExecContext(t.Context(), `SET session_replication_role = replica`); err != nil { // in any order, and without triggers
		return err
	}

	for _, table := range column(t, from, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'goose_db_version'`) {
		if err := copyTable(t.Context(), table, from, link); err != nil {
			return fmt.Errorf("copy %s: %w", table, err)
		}
	}
	_, err = link.ExecContext(t.Context(), `SET session_replication_role = DEFAULT`)
	return err
}

func column(t *testing.T, db *sql.DB, query string) (texts []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

func copyTable(ctx context.Context, table string, from *sql.DB, to *sql.Conn) error {
	types := map[string]string{}
	described, err := to.QueryContext(ctx, `SELECT column_name, data_type FROM information_schema.columns WHERE table_name = $1`, table)
	if err != nil {
		return err
	}

	for described.Next() {
		var name, kind string
		if err := described.Scan(&name, &kind); err != nil {
			return err
		}
		types[name] = kind
	}
	described.Close()

	rows, err := from.QueryContext(ctx, `SELECT * FROM "`+table+`"`)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}

	marks := make([]string, len(names))
	for i := range names {
		marks[i] = fmt.Sprintf("$%d", i+1)
	}

	insert := fmt.Sprintf(`INSERT INTO "%s" ("%s") VALUES (%s)`, table, strings.Join(names, `", "`), strings.Join(marks, ", "))
	for rows.Next() {
		values, at := make([]any, len(names)), make([]any, len(names))
		for i := range at {
			at[i] = &values[i]
		}
		if err := rows.Scan(at...); err != nil {
			return err
		}

		for i, v := range values {
			values[i] = typed(v, types[names[i]])
		}
		if _, err := to.ExecContext(ctx, insert, values...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// typed is a value of SQLite as PostgreSQL's type takes it.
func typed(v any, kind string) any {
	b, isBytes := v.([]byte)
	n, isNumber := v.(int64)
	if isBytes && kind == "uuid" {
		return hex.EncodeToString(b)
	}
	if isNumber && kind == "boolean" {
		return n != 0
	}
	return v
}

func named(t *testing.T, db *store.DB, name string) flex.Org {
	t.Helper()
	var org flex.Org
	err := db.ReadAll(t.Context(), func(all *store.All) (err error) {
		org, err = all.OrgNamed(t.Context(), name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return org
}

// TestGolden_Settings shows that settings of an earlier release are read by name, and that
// keeping them again changes no byte.
func TestGolden_Settings(t *testing.T) {
	want := map[string]flex.OrgSettings{
		"golden": {
			DefaultNeed: 12_345, FleetCap: 50_000, StartsPerMinute: 7, Rates: flex.BatteryRates{Peak: flex.Some(30.5), OffPeak: flex.Some(7.25), Export: flex.Some(15.0)},
		},
		"untouched": {}, "blank": {}, "zeros": {},
	}
	eachGolden(t, func(t *testing.T, db *store.DB, url string) {
		seed := storetest.At(t, db, url)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			org := named(t, db, name)
			if org.Settings != want[name] {
				t.Errorf("%s: %+v, want %+v", name, org.Settings, want[name])
			}

			was := seed.Strings(`SELECT settings FROM org WHERE name = $1`, name)
			for i := range was { // a code is asked for by default now, so that this key says nothing
				was[i] = regexp.MustCompile(`"TwoFactor":(true|false),`).ReplaceAllString(was[i], "")
			}
			err := db.Write(t.Context(), org.ID, func(tx *store.Tx) error { return tx.SetSettings(t.Context(), org.Settings) })
			if err != nil {
				t.Fatal(err)
			}
			if is := seed.Strings(`SELECT settings FROM org WHERE name = $1`, name); name != "untouched" && !slices.Equal(was, is) {
				t.Errorf("%s: kept as\n%s, was\n%s", name, is, was)
			}
		}
	})
}

// TestGolden_Terms shows that what was set before terms were dated holds from the beginning, and
// that what was zero then is the default.
func TestGolden_Terms(t *testing.T) {
	want := map[string][]string{
		"golden": {
			"baseline=mean", "credit_pence_per_kwh=2.5", "in_day_cap_wh=777", "loss_factor=1.05", "min_wait_days=1", "min_withdrawal_pence=10",
			"paid_early=0.8", "rounding=half_even", "user_share=0.5",
		},
		"untouched": nil, "blank": nil, "zeros": {"user_share=0.3"},
	}

	eachGolden(t, func(t *testing.T, db *store.DB, _ string) {
		for _, name := range slices.Sorted(maps.Keys(want)) {
			var got []string
			var crediting, certainty []flex.Term
			err := db.Read(t.Context(), named(t, db, name).ID, func(tx *store.Tx) error {
				terms, err := tx.Terms(t.Context())

				for _, term := range terms {
					switch term.Name {
					case "crediting":
						crediting = append(crediting, term)
						continue
					case "certainty":
						certainty = append(certainty, term)
						continue
					}

					got = append(got, term.Name+"="+term.Value)
					if term.From != (flex.Day{}) || !term.SetAt.IsZero() {
						t.Errorf("%s: %+v", name, term)
					}
				}
				return err
			})
			if err != nil || !slices.Equal(got, want[name]) {
				t.Errorf("%s: %q, %v, want %q", name, got, err, want[name])
			}

			if len(certainty) != 2 || certainty[0].Value != "0" || certainty[1].Value != "" || certainty[1].From != crediting[1].From {
				t.Errorf("%s asks for certainty from the month from which it credits by month: %+v", name, certainty)
			}
			if len(crediting) != 2 || crediting[0].Value != "event" || crediting[1].Value != "" || crediting[1].From.Dom != 1 || crediting[1].From.Year < 2026 {
				t.Errorf("%s credits by event, and by month from the first of a month: %+v", name, crediting)
			}
		}
	})
}

// TestGolden_Results shows the same of the results of settlement.
func TestGolden_Results(t *testing.T) {
	eachGolden(t, func(t *testing.T, db *store.DB, url string) {
		org, seed := named(t, db, "golden"), storetest.At(t, db, url)
		was := seed.Strings(`SELECT result FROM settlement ORDER BY version`)
		err := db.Write(t.Context(), org.ID, func(tx *store.Tx) error {
			runs, err := tx.Runs(t.Context(), 10)
			if err != nil {
				return err
			}
			again := store.Run{ID: tx.NewRunID(), Kind: store.AgainRun, KnownAt: tx.Now(), StartedAt: tx.Now()}
			if err := tx.AddRun(t.Context(), again); err != nil {
				return err
			}

			newest, err := tx.SettlementsIn(t.Context(), runs[0].ID)
			if err != nil {
				return err
			}
			r := newest[0].Result
			r.Excluded = nil // eight of them, which the bytes below hold
			want := settle.Result{
				Event: r.Event, Day: flex.Day{Year: 2025, Month: 2, Dom: 3}, Metering: settle.Asset, Method: settle.Mean, Quality: settle.Full,
				Used: r.Used, Flex: -1632, Gross: 428_400, Credit: 17, Owed: 17, Kept: 26,
				Periods: []settle.Settled{
					{Period: 35, Baseline: 921, Metered: 120, Flex: -801, Price: 250_000_000, Revenue: 200_250_000_000, Read: true, Known: true},
					{Period: 36, Baseline: 921, Metered: 90, Flex: -831, Price: 250_000_000, Revenue: 207_750_000_000, Read: true, Known: true},
				},
			}
			if !reflect.DeepEqual(*r, want) || len(r.Used) != 10 || r.Used[9] != (flex.Day{Year: 2025, Month: 1, Dom: 16}) {
				t.Errorf("read %+v, want %+v", *r, want)
			}

			for _, run := range runs {
				ss, err := tx.SettlementsIn(t.Context(), run.ID)
				if err != nil {
					return err
				}

				next := store.Run{ID: tx.NewRunID(), Kind: store.AgainRun, KnownAt: tx.Now(), StartedAt: tx.Now()}
				if err := tx.AddRun(t.Context(), next); err != nil {
					return err
				}
				if err := tx.AddSettlements(t.Context(), next.ID, ss); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		is := seed.Strings(`SELECT result FROM settlement ORDER BY version`)
		if len(was) != 2 || !slices.Equal(is, []string{was[0], was[0], was[1], was[1]}) {
			t.Errorf("kept again as\n%s\nwas\n%s", strings.Join(is, "\n"), strings.Join(was, "\n"))
		}
	})
}

// TestGolden_Rest shows the same of an asset's events, of caps and of access to a cloud, and
// that the books are read.
func TestGolden_Rest(t *testing.T) {
	eachGolden(t, func(t *testing.T, db *store.DB, url string) {
		org, seed := named(t, db, "golden"), storetest.At(t, db, url)
		asset, site := flex.AssetID{1}, flex.SiteID{9}
		was := seed.Strings(`SELECT told FROM asset_event ORDER BY id`)
		err := db.Write(t.Context(), org.ID, func(tx *store.Tx) error {
			events, err := tx.PastEvents(t.Context(), asset, flex.Span{From: time.Unix(0, 0), To: tx.Now()}, 10)
			if err != nil {
				return err
			}

			wantEvents(t, events)
			for _, e := range events {
				if err := tx.AddEvent(t.Context(), asset, e.Kind, e.What); err != nil {
					return err
				}
			}

			caps, ok, err := tx.Caps(t.Context())
			if err != nil {
				return err
			}
			if from := time.Date(2025, 2, 10, 12, 0, 0, 0, time.UTC); !ok || !caps.Shadow.From.Equal(from) || *caps.Fleet.Power != 5000 {
				t.Errorf("caps %+v", caps)
			}

			balance, err := tx.Balance(t.Context(), site)
			if err != nil || balance != 7 {
				t.Errorf("balance %s, %v", balance, err)
			}
			waiting, err := tx.Withdrawals(t.Context(), ledger.PendingApproval)
			if err != nil || len(waiting) != 1 || waiting[0].Amount != 11 {
				t.Errorf("withdrawals %+v, %v", waiting, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		if is := seed.Strings(`SELECT told FROM asset_event ORDER BY id`); len(was) != 2 || !slices.Equal(is, slices.Concat(was, was)) {
			t.Errorf("events kept as %q, were %q", is, was)
		}

		err = db.ReadAll(t.Context(), func(all *store.All) error {
			tokens, err := all.CloudTokens(t.Context(), site)
			if err != nil || len(tokens) != 1 || tokens[0].Access != "access-1" || tokens[0].Refresh != "refresh-1" {
				t.Errorf("%d tokens, %v", len(tokens), err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func wantEvents(t *testing.T, events []store.PastEvent) {
	t.Helper()
	local := flex.WallTime(7*time.Hour + 15*time.Minute)
	want := []store.AssetEvent{
		{
			VehicleRate: 7000, Tariff: &flex.Tariff{OffPeak: "00:00-05:30", Zone: "Europe/London", Type: "static"},
			Intent: &flex.Intent{
				Need: 12_500, ReadyBy: time.Date(2025, 2, 11, 7, 15, 0, 0, time.UTC), ReadyByOffset: time.Hour, ReadyByLocal: &local, Estimated: new(true),
				MayChargePeak: true, Mode: flex.Minimise, ReceivedAt: time.Date(2025, 2, 10, 12, 0, 0, 0, time.UTC),
			},
		},
		{EndAt: time.Date(2025, 2, 10, 14, 1, 0, 0, time.UTC)},
	}
	got := []store.AssetEvent{}
	for _, e := range events {
		got = append(got, e.What)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("events %+v, want %+v", got, want)
	}
}

// TestRecords_Whole shows that what is stored of a result and of an event is all of it: whoever
// adds a field adds it to its record too.
func TestRecords_Whole(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		org, err := db.AddOrg(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}

		var result settle.Result
		var settings flex.OrgSettings
		var event store.AssetEvent
		for _, v := range []any{&result, &settings, &event} {
			fill(reflect.ValueOf(v).Elem())
		}
		event.Blocks = nil                      // an event that has them has nothing else
		result.Terms.Rounding = settle.HalfEven // there is no seventh

		err = db.Write(t.Context(), org.ID, func(tx *store.Tx) error {
			run := store.Run{ID: tx.NewRunID(), Kind: store.AgainRun, KnownAt: tx.Now(), StartedAt: tx.Now()}
			if err := tx.AddRun(t.Context(), run); err != nil {
				return err
			}
			if err := tx.AddSettlements(t.Context(), run.ID, []store.Settlement{{Event: result.Event, Result: &result}}); err != nil {
				return err
			}
			got, err := tx.SettlementBy(t.Context(), result.Event, run.ID)
			if err != nil || !reflect.DeepEqual(*got.Result, result) {
				t.Errorf("a result comes back as %+v, %v; was %+v", got.Result, err, result)
			}

			if err := tx.SetSettings(t.Context(), settings); err != nil {
				return err
			}

			for _, e := range []store.AssetEvent{event, {Blocks: []store.Block{{Start: "a", End: "b"}}}, {}} {
				if err := tx.AddEvent(t.Context(), flex.AssetID{1}, "plug_in", e); err != nil {
					return err
				}
				back, err := tx.PastEvents(t.Context(), flex.AssetID{1}, flex.Span{From: tx.Now(), To: tx.Now().Add(time.Hour)}, 1)
				if err != nil || len(back) != 1 || !reflect.DeepEqual(back[0].What, e) {
					t.Errorf("an event comes back as %+v, %v; was %+v", back, err, e)
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		if got := named(t, db, "acme").Settings; got != settings {
			t.Errorf("settings come back as %+v, were %+v", got, settings)
		}
	})
}

// fill gives every field of a value a value that is not zero.
func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		return
	}

	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))

		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)

	case reflect.Float64:
		v.SetFloat(0.25)
	default:
		if v.CanUint() {
			v.SetUint(7)
		} else {
			v.SetInt(7)
		}
	}
}
