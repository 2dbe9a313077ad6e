package api_test

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/delivery"
	"flexd/internal/directory"
	"flexd/internal/egress"
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
				t.Errorf(
					"POST %s: answered with\n%s\nand, repeated, with\n%s",
					path,
					first,
					again.body,
				)
			}
			return first
		}

		const site = `{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street"}`
		id := text(t, repeat("/entities/site", site), "id")
		asset := text(
			t,
			repeat("/entities/asset", `{"site_id":"`+id+`","external_id":"charger-1","type":"charger"}`),
			"id",
		)

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
		there := "/entities/site/" + text(
			t,
			h.want("GET", "/entities/site", "", 200, "").body,
			"sites",
			0,
			"id",
		)
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

// So it is with what a second run would answer otherwise: it would find the schedule paused, the reading decided on, and nothing to stop.
func TestIdempotencyKey_AnswerLostOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		now := db.Now().Truncate(flex.HalfHour)
		at := func(n int) string { return now.Add(time.Duration(n) * flex.HalfHour).UTC().Format(time.RFC3339) }
		h.want(
			"POST",
			"/grid/instructions",
			`{"service":"dno","start_timestamp":"`+at(60)+`","end_timestamp":"`+at(62)+`","reason":"peak","change_kw":-10}`,
			200,
			"",
		)

		seed := storetest.NewSeed(t, db, url).As(h.org.ID)
		paused := seed.Asset(seed.Site(flex.LimitedPauseMethod), flex.Charger, 7400).String()
		h.want("POST", "/data/readings", `{"readings":[{"asset_id":"`+h.charger()+`","start_timestamp":"`+at(-10)+`","end_timestamp":"`+at(-9)+
			`","value":510,"label":"charger_consumption_energy_kwh"}]}`, 200, "")
		held := text(
			t,
			h.want("GET", "/data/readings/held", "", 200, "").body,
			"readings",
			0,
			"id",
		)
		afterCommit(seed, db.Engine())

		for _, c := range []struct{ path, body, says string }{
			{"/entities/asset/" + paused + "/event/plug-in-schedule", `{"charging_schedule":[{"start_timestamp":"` + at(4) + `","end_timestamp":"` + at(12) + `"}]}`, at(4)},
			{"/data/readings/held/" + held + "/release", `{"reason":"read on the spot"}`, `"state":"released"`},
			{"/grid/instructions/stop", "", `{"num_stopped":1}`},
		} {
			key := "Idempotency-Key: k" + c.path
			first := h.want("POST", c.path, c.body, 200, "", key)
			again := h.want("POST", c.path, c.body, 200, first.body, key)
			if !strings.Contains(first.body, c.says) || again.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf(
					"POST %s: answered with\n%s\nand, repeated, with\n%s",
					c.path,
					first.body,
					again.body,
				)
			}
		}
	})
}

// So it is with the binding of a program, whose end a repeat would not find.
func TestIdempotencyKey_AnswerLostByBinding(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		business := adr.Client{Org: h.org.ID, ID: "bl", Business: true}
		o, err := h.server.ADR.Create(
			t.Context(),
			business,
			flex.ADRProgram,
			map[string]any{"programName": "one"},
		)
		if err != nil {
			t.Fatal(err)
		}
		afterCommit(storetest.At(t, db, url), db.Engine())

		path := "/grid/programs/" + o.ID.String() + "/binding"
		for _, c := range [][2]string{{"PUT", `{"service":"dno","simple_kw":[-100]}`}, {"DELETE", ""}} {
			key := "Idempotency-Key: " + c[0]
			first := h.want(c[0], path, c[1], 200, "", key).body
			h.want(c[0], path, c[1], 200, first, key)
		}
	})
}

// A secret whose answer was lost is in force, and a repeat makes no other: it is refused rather than answered with one that was
// rolled back.
func TestIdempotencyKey_SecretLost(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(
			t,
			url,
			store.Options{Environment: flex.Sandbox, Keys: storetest.Keys(t)},
		)
		h := open(t, db)
		h.server.Push = &delivery.Service{DB: db, Out: egress.New(egress.Options{})}
		h.want(
			"PUT",
			"/endpoints/schedule",
			`{"url":"https://example.com/"}`,
			200,
			"",
		)
		const path, key = "/endpoints/schedule/rotate", "Idempotency-Key: turn"
		h.want("POST", path, "", 200, "", key)
		storetest.At(t, db, url).Exec(`UPDATE idempotency SET status = 0, holder = 0, committed = 1`)

		for range 2 {
			again := h.want("POST", path, "", 409, "", key)
			if strings.Contains(again.body, "whsec_") || !strings.Contains(again.body, "shown once") {
				t.Errorf("repeated: %s", again.body)
			}
		}
	})
}

// A test message whose answer was lost is sent once more by the repeat, which waits for that one.
func TestIdempotencyKey_TestMessageLost(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h, in, address := posting(t, db)
		in.secret = text(
			t,
			h.want("PUT", "/endpoints/schedule", `{"url":"`+address+`/"}`, 200, "").body,
			"secret",
		)
		const path, key = "/endpoints/schedule/test", "Idempotency-Key: test"
		h.want("POST", path, "", 200, "", key)
		storetest.At(t, db, url).Exec(`UPDATE idempotency SET status = 0, answer = NULL, sealed = NULL, holder = 0, committed = 1`)

		if again := h.want("POST", path, "", 200, "", key); get(t, again.body, "accepted") != true {
			t.Errorf("repeated: %s", again.body)
		}
	})
}

// A token whose process ended before its answer was kept is made anew by the repeat, and works.
func TestIdempotencyKey_TokenLost(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		site := text(
			t,
			h.want("POST", "/entities/site", `{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street"}`, 200, "").body,
			"id",
		)
		path := "/entities/site/" + site + "/home-assistant-token"
		h.want("POST", path, "", 200, "", "Idempotency-Key: t")
		storetest.At(t, db, url).Exec(`UPDATE idempotency SET status = 0, holder = 0, committed = 1`)
		token := text(
			t,
			h.want("POST", path, "", 200, "", "Idempotency-Key: t").body,
			"access_token",
		)
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
		t.Errorf(
			"answered with %s, and the site is not there: %d %s",
			made,
			r.StatusCode,
			r.body,
		)
	}
}

// halfway is a sandbox clock whose advances end half the way, as many as are to be cut.
type halfway struct {
	now time.Time
	cut int
}

func (c *halfway) Clock(context.Context, flex.OrgID) (time.Time, bool, error) {
	return c.now, true, nil
}

func (c *halfway) Advance(_ context.Context, _ flex.OrgID, to time.Time) error {
	if c.cut == 0 {
		c.now = to
		return nil
	}

	c.cut--
	c.now = c.now.Add(to.Sub(c.now) / 2)

	return flex.Fail(flex.Unavailable, "the database does not answer")
}

// turned is the status of an advance under a key. An answer of 503 is in no document.
func (h *fixture) turned(path, body, key string) int {
	h.Helper()
	req, err := http.NewRequestWithContext(
		h.Context(),
		"POST",
		h.url+path,
		strings.NewReader(body),
	)

	if err != nil {
		h.Fatal(err)
	}

	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Idempotency-Key", key)

	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()

	return res.StatusCode
}

// An advance by a duration that is cut and sent again under its key ends where the first was to end; under another key it is
// another.
func TestIdempotencyKey_ClockCut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		start := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		clock := &halfway{now: start, cut: 2}
		h.server.Clock = clock

		const path, body = "/sandbox/clock", `{"advance":"PT8H"}`
		for _, status := range []int{503, 503, 200, 200} {
			if got := h.turned(path, body, "turn"); got != status {
				t.Errorf("status %d, want %d", got, status)
			}
		}
		if want := start.Add(8 * time.Hour); !clock.now.Equal(want) {
			t.Errorf("the clock reads %s, want %s", clock.now, want)
		}

		h.want("POST", path, body, 200, "", "Idempotency-Key: another")
		if want := start.Add(16 * time.Hour); !clock.now.Equal(want) {
			t.Errorf("the clock reads %s, want %s", clock.now, want)
		}
	})
}

// An advance that is repeated since only its answer was lost advances nothing: the clock is there, and may have gone on.
func TestIdempotencyKey_ClockThere(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		start := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		clock := &halfway{now: start}
		h.server.Clock = clock

		const path, body, key = "/sandbox/clock", `{"advance":"PT8H"}`, "Idempotency-Key: turn"
		target := strconv.FormatInt(start.Add(8*time.Hour).UnixMicro(), 10)
		h.want("POST", path, body, 200, "", key)
		storetest.At(t, db, url).Exec(`UPDATE idempotency SET status = 0, answer = $1, sealed = NULL, holder = 0, committed = 1`, []byte(target))
		clock.now = clock.now.Add(time.Second)
		h.want("POST", path, body, 200, "", key)
		if want := start.Add(8*time.Hour + time.Second); !clock.now.Equal(want) {
			t.Errorf("the clock reads %s, want %s", clock.now, want)
		}
	})
}
