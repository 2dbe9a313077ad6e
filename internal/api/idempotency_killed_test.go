package api_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// afterCommit has the database refuse every answer that is kept after the commit of what it is about, as if the
// process ended between the two.
func afterCommit(seed *storetest.Seed, engine string) {
	const late = `NEW.status = 200 AND NEW.committed = OLD.committed`
	if engine == "sqlite" {
		seed.Exec(`CREATE TRIGGER late BEFORE UPDATE ON idempotency WHEN ` + late +
			` BEGIN SELECT RAISE(ABORT, 'the process has ended'); END`)
		return
	}

	seed.Exec(`CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the process has ended'; END $$`)
	seed.Exec(`CREATE TRIGGER late BEFORE UPDATE ON idempotency FOR EACH ROW WHEN (` + late +
		`) EXECUTE FUNCTION late()`)
}

// A request that makes something keeps its answer in the commit of what it makes: a process that ends after
// it leaves a repeat that is answered with the same bytes, and what was made is there once.
func TestIdempotencyKey_AnswerLost(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		h.stock()
		seed := storetest.At(t, db, url)
		afterCommit(seed, db.Engine())

		repeat := func(path, body string) string {
			t.Helper()
			key := "Idempotency-Key: " + path
			first := h.want("POST", path, body, 200, "", key).body
			again := h.want("POST", path, body, 200, "", key)
			if again.body != first || again.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("POST %s: answered with\n%s\nand, repeated, with\n%s", path, first, again.body)
			}
			return first
		}

		const site = `{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street"}`
		id := text(t, repeat("/entities/site", site), "id")
		asset := text(t, repeat("/entities/asset", `{"site_id":"`+id+`","external_id":"charger-1","type":"charger"}`), "id")

		deleted := func(path string) {
			t.Helper()
			key := "Idempotency-Key: delete " + path
			h.want("DELETE", path, "", 204, "", key)
			seed.Exec(`UPDATE idempotency SET status = 0, holder = 0, committed = 1 WHERE status = 204`)
			h.want("DELETE", path, "", 204, "", key)
		}
		deleted("/entities/asset/" + asset)
		deleted("/entities/site/" + id)

		agreed := site[:len(site)-1] + `,` + consent + `}`
		repeat("/entities/site/onboard-site-and-asset", `{"site":`+agreed+`,"asset":{"external_id":"charger-2","type":"charger"},"dispatch_consent":{"dispatch_methods":[]}}`)
		merged := `{"site":` + agreed + `,"assets":[{"external_id":"charger-3","type":"charger"}]`
		if made := repeat("/entities/site/initialise", merged+`}`); !strings.Contains(made, `"asset_created":true`) {
			t.Errorf("initialised with %s", made)
		}
		merged = strings.Replace(merged, "charger-3", "charger-4", 1)
		if made := repeat("/entities/site/onboard", merged+`,"enrolment":{},"proposition":"limited_pause"}`); !strings.Contains(made, `"asset_created":true`) {
			t.Errorf("onboarded with %s", made)
		}

		// Under another key it is another request.
		h.want("POST", "/entities/site", site, 409, "", "Idempotency-Key: a third")

		// What ended an enrolment, or took a site away, is answered as it was the first time.
		there := "/entities/site/" + text(t, h.want("GET", "/entities/site", "", 200, "").body, "sites", 0, "id")
		if left := repeat(there+"/unenrol", `{"proposition":"limited_pause"}`); text(t, left, "status") != "unenrolled" {
			t.Errorf("unenrolled with %s", left)
		}
		if left := repeat(there+"/offboard-site-and-assets", ""); text(t, left, "asset", "external_id") != "charger-2" {
			t.Errorf("offboarded with %s", left)
		}
	})
}

// So it is with what is sold to the grid: an instruction, and the products of a file.
func TestIdempotencyKey_AnswerLostByTheGrid(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		afterCommit(storetest.At(t, db, url), db.Engine())

		from := flex.PeriodAt(time.Now().Add(30 * time.Hour)).Start()
		window := `"service":"dno","start_timestamp":"` + from.Format(time.RFC3339) + `","end_timestamp":"` + from.Add(time.Hour).Format(time.RFC3339) + `"`
		for path, body := range map[string]string{
			"/grid/instructions": `{` + window + `,"reason":"peak","change_kw":-10}`,
			"/grid/products":     `{"products":[{"reference":"A",` + window + `,"volume_kw":500,"price_gbp_per_mwh":300}]}`,
		} {
			key := "Idempotency-Key: k" + path
			first := h.want("POST", path, body, 200, "", key).body
			h.want("POST", path, body, 200, first, key)
			if r := h.ask("GET", path, ""); !strings.Contains(r.body, `"num_total":1`) {
				t.Errorf("%s: made more than once, or not at all: %s", path, r.body)
			}
		}
	})
}

// A token whose process ended before its answer was kept is made anew by the repeat, and works.
func TestIdempotencyKey_TokenLost(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		site := text(t, h.want("POST", "/entities/site", `{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street"}`, 200, "").body, "id")
		path := "/entities/site/" + site + "/home-assistant-token"
		h.want("POST", path, "", 200, "", "Idempotency-Key: t")
		storetest.At(t, db, url).Exec(`UPDATE idempotency SET status = 0, holder = 0, committed = 1`)
		token := text(t, h.want("POST", path, "", 200, "", "Idempotency-Key: t").body, "access_token")
		if r := h.ask("GET", "/entities/site/"+site, "", "Authorization: Bearer "+token); r.StatusCode == 401 {
			t.Errorf("the repeat's token: %d %s", r.StatusCode, r.body)
		}
	})
}

// An instruction that fails for a fault of ours is in the audit log with that outcome, and sends nothing. Sent again under its key
// it is carried out, and not only answered as if it were: what the log has of the first run is no part of it.
func TestIdempotencyKey_FailedAct(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		seed := storetest.At(t, db, url)
		if db.Engine() == "sqlite" {
			seed.Exec(`CREATE TRIGGER faulty BEFORE INSERT ON instruction BEGIN SELECT RAISE(ABORT, 'planted'); END`)
		} else {
			seed.Exec(`CREATE FUNCTION faulty() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$`)
			seed.Exec(`CREATE TRIGGER faulty BEFORE INSERT ON instruction FOR EACH ROW EXECUTE FUNCTION faulty()`)
		}

		const path, key = "/grid/instructions", "Idempotency-Key: failed"
		from := flex.PeriodAt(time.Now().Add(30 * time.Hour)).Start()
		body := `{"service":"dno","start_timestamp":"` + from.Format(time.RFC3339) + `","end_timestamp":"` + from.Add(time.Hour).Format(time.RFC3339) + `","reason":"peak","change_kw":-10}`
		if r := h.ask("POST", path, body, key); r.StatusCode != 500 {
			t.Fatalf("with a faulty database: %d %s", r.StatusCode, r.body)
		}

		if db.Engine() == "sqlite" {
			seed.Exec(`DROP TRIGGER faulty`)
		} else {
			seed.Exec(`DROP TRIGGER faulty ON instruction`)
		}

		first := h.want("POST", path, body, 200, "", key).body
		if r := h.ask("GET", path, ""); !strings.Contains(r.body, `"num_total":1`) {
			t.Errorf("answered with %s, and there is\n%s", first, r.body)
		}

		h.want("POST", path, body, 200, first, key)
		var outcomes []string
		err := db.ReadAll(t.Context(), func(all *store.All) error {
			acts, err := all.Acts(t.Context(), store.ActFilter{Act: "send instruction", Limit: 9})
			for _, a := range acts {
				outcomes = append(outcomes, a.Outcome)
			}
			return err
		})
		if err != nil || !slices.Equal(outcomes, []string{flex.ActDone, "failed"}) {
			t.Errorf("the audit log has %q, %v", outcomes, err)
		}
	})
}

// knownMeter is a directory that knows one meter.
type knownMeter struct {
	directory.Source
	meter flex.Meter
}

func (k knownMeter) ByMPAN(context.Context, directory.MPAN) (flex.Meter, error) { return k.meter, nil }

// A new site that fails for a fault of ours after its meter was looked up is made when it is sent again under its key, though
// the meter is known by then.
func TestIdempotencyKey_MeterLookedUp(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "flexd.db")
	db := storetest.Open(t, url, store.Options{})
	h := open(t, db)
	h.server.Registry.Meters = knownMeter{meter: flex.Meter{MPAN: "1234567890126", Postcode: "SW1A 2AA"}}
	seed := storetest.At(t, db, url)
	seed.Exec(`CREATE TRIGGER faulty BEFORE INSERT ON site BEGIN SELECT RAISE(ABORT, 'planted'); END`)

	const path, key = "/entities/site/initialise", "Idempotency-Key: failed"
	const body = `{"site":{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street",` + consent + `},"assets":[{"external_id":"charger-9","type":"charger"}]}`
	if r := h.ask("POST", path, body, key); r.StatusCode != 500 {
		t.Fatalf("with a faulty database: %d %s", r.StatusCode, r.body)
	}

	seed.Exec(`DROP TRIGGER faulty`)
	made := h.want("POST", path, body, 200, "", key).body
	_, id, _ := strings.Cut(made, `"site_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if r := h.ask("GET", "/entities/site/"+id, ""); r.StatusCode != 200 {
		t.Errorf("answered with %s, and the site is not there: %d %s", made, r.StatusCode, r.body)
	}
}
