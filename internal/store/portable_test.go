package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Every table is known to go with an organisation or not to: a new one without a word on it
// fails here, and would be missing from what another flexd takes in.
func TestPortable_EveryTableIsPlaced(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		err := db.ReadAll(t.Context(), func(all *store.All) error {
			names, err := all.TablesNotPortable(t.Context())
			if len(names) > 0 {
				t.Errorf("tables that nobody has placed: %v", names)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// unlawful opens a store whose records need not make sense.
func unlawful(t *testing.T, url string, key byte) *store.DB {
	t.Helper()
	ring, err := keyring.NewRing([keyring.KeySize]byte{key})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), url, store.Options{Environment: flex.Sandbox, Keys: ring})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// exported is the file of an organisation.
func exported(t *testing.T, db *store.DB, org flex.OrgID) string {
	t.Helper()
	var out bytes.Buffer
	err := db.ReadAll(t.Context(), func(all *store.All) error {
		_, err := all.ExportOrg(t.Context(), org, &out)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func take(ctx context.Context, db *store.DB, file string) error {
	return db.WriteAll(ctx, func(all *store.All) error {
		return store.TakeOrg(ctx, all, strings.NewReader(file))
	})
}

// portableEngines are the engines from which and into which an organisation goes.
var portableEngines = []struct {
	name     string
	from, to func(testing.TB) string
}{
	{"sqlite to sqlite", storetest.SQLite, storetest.SQLite},
	{"sqlite to postgres", storetest.SQLite, storetest.Postgres},
	{"postgres to sqlite", storetest.Postgres, storetest.SQLite},
	{"postgres to postgres", storetest.Postgres, storetest.Postgres},
}

// An organisation with rows in every table goes into another flexd, which has another key and an
// organisation of its own; its file is the same there, byte by byte, and has nothing of a
// second organisation.
func TestExportOrg_RoundTrip(t *testing.T) {
	for _, e := range portableEngines {
		t.Run(e.name, func(t *testing.T) {
			ctx := t.Context()
			from, to := unlawful(t, e.from(t), 1), unlawful(t, e.to(t), 2)
			first := filled(t, from, "first", 1, 2, 3)
			second := filled(t, from, "second", 11, 12)
			other := filled(t, to, "other", 21, 22)
			theirs := exported(t, to, other)

			file := exported(t, from, first)
			for name, id := range map[string]string{"the other": other.String(), "the second": second.String(), "a sealed value of the second": hex.EncodeToString([]byte("opened 12"))} {
				if strings.Contains(file, id) {
					t.Errorf("the file has %s", name)
				}
			}
			if n := strings.Count(file, hex.EncodeToString([]byte("opened 3"))); n != 4 {
				t.Errorf("the file has %d opened values of the third rows, want an OpenADR object, a bank account, one of a payment and a name", n)
			}

			if err := take(ctx, to, file); err != nil {
				t.Fatal(err)
			}
			if again := exported(t, to, first); again != file {
				t.Errorf("the file is another after the journey:\n%s\n%s", file, again)
			}

			if err := take(ctx, to, file); flex.KindOf(err) != flex.Conflict {
				t.Errorf("taken in twice: %v", err)
			}
			if exported(t, to, first) != file || exported(t, to, other) != theirs {
				t.Error("the second import changed something")
			}
		})
	}
}

func filled(t *testing.T, db *store.DB, name string, rows ...int) flex.OrgID {
	t.Helper()
	org, err := db.AddOrg(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	err = db.WriteAll(t.Context(), func(all *store.All) error {
		return store.FillCarried(t.Context(), all, org.ID, rows)
	})
	if err != nil {
		t.Fatal(err)
	}
	return org.ID
}

// A file that is cut anywhere, or changed, or that has another organisation's rows, leaves
// nothing behind.
func TestImportOrg_Refused(t *testing.T) {
	from := unlawful(t, storetest.SQLite(t), 1)
	org := filled(t, from, "first", 1, 2, 3)
	file := exported(t, from, org)

	storetest.EachURL(t, func(t *testing.T, url string) {
		to := unlawful(t, url, 2)
		other := filled(t, to, "other", 21)
		before := exported(t, to, other)

		bad := map[string]string{
			"empty":             "",
			"another file":      "start,price\n",
			"another schema":    strings.Replace(file, `"schema":`, `"schema":1`, 1),
			"another form":      strings.Replace(file, `"version":1`, `"version":2`, 1),
			"another place":     strings.Replace(file, `"sandbox"`, `"production"`, 1),
			"a changed row":     strings.Replace(file, "postcode <2>", "postcode <9>", 1),
			"more behind":       file + file,
			"unknown column":    strings.Replace(file, `"columns":["address"`, `"columns":["adress"`, 1),
			"one row of theirs": resummed(t, oneRow(file, "tariff_type <2>", hexOf(org), hexOf(other))),
			"a reading of none": resummed(t, withReading(file)),
			"a forged curve":    resummed(t, strings.Replace(file, `,"2"]`, `,"3"]`, 1)),
			"a row of words":    resummed(t, strings.Replace(file, `"tariff_type <2>`, `7,"tariff_type <2>`, 1)),
		}
		for _, cut := range []int{1, len(file) / 3, len(file) / 2, len(file) - 2} {
			bad[fmt.Sprintf("cut at %d", cut)] = file[:cut]
		}
		lines := strings.SplitAfter(file, "\n")
		for n := 1; n < len(lines)-1; n += 7 {
			bad[fmt.Sprintf("cut after line %d", n)] = strings.Join(lines[:n], "")
		}

		for name, text := range bad {
			if text == file {
				t.Fatalf("%s: the file was not changed", name)
			}
			if err := take(t.Context(), to, text); flex.KindOf(err) != flex.Invalid {
				t.Errorf("%s: %v", name, err)
			}
			_, err := to.ImportOrg(t.Context(), opener(text), false)
			if kind := flex.KindOf(err); kind != flex.Invalid && kind != flex.Conflict {
				t.Errorf("%s: %v", name, err)
			}
		}

		if exported(t, to, other) != before {
			t.Error("the other organisation was changed")
		}
		if err := take(t.Context(), to, file); err != nil { // nothing was left behind
			t.Error(err)
		}
	})
}

func opener(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

func hexOf(org flex.OrgID) string { return hex.EncodeToString(org.Bytes()) }

// oneRow changes the one row that has a mark.
func oneRow(file, mark, old, put string) string {
	lines := strings.SplitAfter(file, "\n")
	for i, l := range lines {
		if strings.Contains(l, mark) {
			lines[i] = strings.Replace(l, old, put, 1)
			break
		}
	}
	return strings.Join(lines, "")
}

// withReading adds a reading of an asset that the file does not have.
func withReading(file string) string {
	at := strings.Index(file, `{"table":"reading_due"`)
	return file[:at] + `["` + strings.Repeat("ee", 16) + `",9000000000000000,1,1,1,1]` + "\n" + file[at:]
}

// resummed puts the right sums at the end of a changed file.
func resummed(t *testing.T, file string) string {
	t.Helper()
	lines := strings.SplitAfter(file, "\n")
	lines = lines[:len(lines)-1]
	var sums []store.PortableSum
	digest := sha256.New()
	for _, l := range lines[1:] {
		if strings.HasPrefix(l, "[") {
			digest.Write([]byte(l))
			sums[len(sums)-1].Rows++
			sums[len(sums)-1].SHA256 = hex.EncodeToString(digest.Sum(nil))
			continue
		}

		var head struct{ Table string }
		if err := json.Unmarshal([]byte(l), &head); err != nil {
			t.Fatal(err)
		}
		if head.Table == "" {
			break
		}
		digest.Reset()
		sums = append(sums, store.PortableSum{Table: head.Table, SHA256: hex.EncodeToString(digest.Sum(nil))})
	}

	end, err := json.Marshal(map[string]any{"end": sums})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines[:len(lines)-1], "") + string(end) + "\n"
}

// An import holds the laws: what breaks one is refused, and so is a metering point that is with
// another organisation; a preview changes nothing.
func TestImportOrg_Laws(t *testing.T) {
	for _, e := range portableEngines {
		t.Run(e.name, func(t *testing.T) {
			ctx, at, to := t.Context(), e.from(t), e.to(t)
			from := storetest.Open(t, at, store.Options{Environment: flex.Sandbox})
			seed := storetest.NewSeed(t, from, at)
			sites := []flex.SiteID{seed.Site(flex.FullScheduleMethod), seed.Site()}
			for _, s := range sites {
				seed.Asset(s, flex.Charger, 7400)
				seed.Asset(s, flex.Battery, 0)
			}

			day := flex.Day{Year: 2026, Month: 10, Dom: 25} // of a clock change
			seed.Readings(day.Period(1), 50*7)
			register := func(seed *storetest.Seed, id byte, mpan string) {
				seed.Exec(`INSERT INTO registration (id, mpan, point, org_id, from_at) VALUES ($1, $2, $2, $3, 1)`,
					flex.SiteID{id}.Bytes(), seed.Kept("registration", "mpan", mpan), seed.Org.Bytes())
			}
			register(seed, 1, "1012345678901")
			register(seed, 2, "1012345678912")
			file := exported(t, from, seed.Org)

			db := storetest.Open(t, to, store.Options{Environment: flex.Sandbox})
			local := storetest.NewSeed(t, db, to)
			if _, err := db.ImportOrg(ctx, opener(file), false); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), `"seeded"`) {
				t.Errorf("an organisation of the same name: %v", err)
			}
			local.Exec(`UPDATE org SET name = 'local'`)
			register(local, 3, "1012345678912")
			if _, err := db.ImportOrg(ctx, opener(file), false); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "[1012345678912]") {
				t.Errorf("a metering point of another organisation's: %v", err)
			}
			local.Exec(`DELETE FROM registration`)

			broken := resummed(t, strings.Replace(file, `,1,1800,`, `,1,1700,`, 1))
			if _, err := db.ImportOrg(ctx, opener(broken), false); err == nil {
				t.Errorf("an asset of no type was taken in")
			}

			for _, preview := range []bool{true, true, false} {
				got, err := db.ImportOrg(ctx, opener(file), preview)
				if err != nil {
					t.Fatal(err)
				}
				if lacks := strings.Join(got.Lacks, "\n"); !strings.Contains(lacks, "1012345678901") {
					t.Errorf("a metering point that is in no list is not named: %q", lacks)
				}

				if want := int64(strings.Count(file, "\n[")); got.Rows() != want || want < 50*7*4 {
					t.Errorf("%d rows, want %d", got.Rows(), want)
				}
				if n := local.Count(`SELECT count(*) FROM org`); (n == 1) != preview {
					t.Errorf("preview %v: %d organisations", preview, n)
				}
			}

			if exported(t, db, seed.Org) != file {
				t.Error("the file is another after the journey")
			}
			if _, err := db.ImportOrg(ctx, opener(file), true); flex.KindOf(err) != flex.Conflict {
				t.Errorf("a second time: %v", err)
			}

			seed.Exec(`UPDATE registration SET next_at = 5, next_org = org_id`)
			err := from.ReadAll(ctx, func(all *store.All) error {
				_, err := all.ExportOrg(ctx, seed.Org, io.Discard)
				return err
			})
			if flex.KindOf(err) != flex.Conflict {
				t.Errorf("with metering points about to change their party: %v", err)
			}
			seed.Exec(`UPDATE registration SET next_at = NULL, next_org = NULL`)
		})
	}
}

// TestExportOrg_Nobody asks for the file of no organisation.
func TestExportOrg_Nobody(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		err := db.ReadAll(t.Context(), func(all *store.All) error {
			_, err := all.ExportOrg(t.Context(), flex.OrgID{1}, os.Stdout)
			return err
		})
		if flex.KindOf(err) != flex.NotFound {
			t.Error(err)
		}
	})
}
