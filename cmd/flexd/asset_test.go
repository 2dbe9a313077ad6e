package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/app"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// openSeeded returns a command line, the app of its database, and what puts records into it.
func openSeeded(t *testing.T) (func(line string) (int, string), *app.App, *storetest.Seed) {
	t.Helper()
	database := freshDatabase(t)
	flexd := commandLineOf(t, database)
	h, err := store{Database: database, Environment: "sandbox"}.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { h.Close() })

	return flexd, h, storetest.NewSeed(t, h.DB, database)
}

// Commands act on assets by their external ids. An action is previewed, carried out, and
// refused if it is not possible.
func TestAsset(t *testing.T) {
	flexd, h, seed := openSeeded(t)
	id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)
	intent := &flex.Intent{Need: flex.FromKWh(10), ReadyByLocal: new(flex.WallTime(7 * time.Hour))}
	if err := h.Control.Event(t.Context(), seed.Org, id, control.Event{Kind: control.PlugIn, Intent: intent}); err != nil {
		t.Fatal(err)
	}

	for _, step := range []struct {
		line string
		code int
		want string
	}{
		{"replan --preview", exitDone, "WOULD BE"},
		{"replan", exitDone, "schedule 2: "},
		{"resend --json", exitDone, `"outcome": "schedule 2 is sent once more"`},
		{"charge-now --for 48h", exitFailed, "refused: charge at once for a minute to 24 hours"},
		{"charge-now --for 2h", exitDone, "may charge"},
		{"ready-by --at noon", exitUsage, "--at"},
		{"ready-by --at 06:30", exitDone, "ready by 06:30"},
		{"release", exitDone, "free of any limit until its next plug-in"},
		{"replan", exitFailed, "refused: no car is plugged in"},
		{"include", exitFailed, "refused: it is not excluded"},
		{"exclude", exitDone, "excluded from control until it is included again"},
		{"include", exitDone, "under control again from the next plan on"},
		{"offboard", exitDone, "Nothing is done yet. It cannot be undone; if you mean it: --confirm 'offboard 1'"},
		{"offboard --confirm yes", exitFailed, `type "offboard 1"`},
	} {
		if code, said := flexd("asset " + step.line + " " + id.String()); code != step.code || !strings.Contains(said, step.want) {
			t.Errorf("%s: %d %s", step.line, code, said)
		}
	}

	if code, said := flexd("asset replan nobody"); code != exitFailed || !strings.Contains(said, "nobody: ") {
		t.Errorf("an asset that is none: %d %s", code, said)
	}

	named := flex.AssetID{7}.String() // as clients name their chargers that have UUIDs of their own
	seed.Exec(`UPDATE asset SET external_id = $1 WHERE id = $2`, named, id.Bytes())
	for _, line := range []string{"asset replan --preview ", "rate show "} {
		if code, said := flexd(line + named); code != exitDone {
			t.Errorf("%s by an external id that is a UUID: %d %s", line, code, said)
		}
	}

	if code, said := flexd("audit list"); code != exitDone || !strings.Contains(said, "charge-now assets") {
		t.Errorf("the audit log: %d %s", code, said)
	}
}

// An id of another organisation's asset names none of the one that is meant.
func TestAsset_OfAnother(t *testing.T) {
	flexd, h, seed := openSeeded(t)
	if _, err := h.DB.AddOrg(t.Context(), "Acme"); err != nil {
		t.Fatal(err)
	}

	theirs := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400).String()
	for _, line := range []string{"exclude --preview", "exclude", "offboard"} {
		if _, said := flexd("asset " + line + " --org Acme " + theirs); !strings.Contains(said, "refused: there is no asset of that id") {
			t.Errorf("%s: %s", line, said)
		}
	}
	if seed.Count(`SELECT COUNT(*) FROM asset WHERE excluded_at IS NOT NULL`) > 0 {
		t.Error("another organisation's asset is excluded")
	}

	if code, said := flexd("asset exclude --org seeded " + theirs); code != exitDone {
		t.Errorf("its own: %d %s", code, said)
	}
}

// Of an action that ends midway, what was done is printed: it stays done.
func TestAsset_EndsMidway(t *testing.T) {
	flexd, _, seed := openSeeded(t)
	site := seed.Site(flex.FullScheduleMethod)
	first, second := seed.Asset(site, flex.Charger, 7400), seed.Asset(
		site,
		flex.Charger,
		7400,
	)
	seed.Exec(fmt.Sprintf(`CREATE TRIGGER faulty BEFORE UPDATE ON asset WHEN NEW.id = x'%x' BEGIN SELECT RAISE(ABORT, 'planted'); END`, second[:]))

	code, said := flexd("asset exclude " + first.String() + " " + second.String())
	if code != exitFailed || !strings.Contains(said, "planted") || strings.Count(said, "excluded from control") != 1 {
		t.Errorf("%d %s", code, said)
	}
}
