package foreign

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"flexd/test/foreign/go/generated"
)

const password = "quick-start-secret"

// sandbox starts the program that FLEXD names on a free port, with an organisation acme in a
// database of its own, and returns its address.
func sandbox(t *testing.T) string {
	t.Helper()
	program := os.Getenv("FLEXD")
	if program == "" {
		t.Fatal("FLEXD has to name the program: run make foreign")
	}

	dir := t.TempDir()
	env := append(os.Environ(), "FLEXD_DATABASE=sqlite:"+filepath.Join(dir, "flexd.db"))
	add := exec.CommandContext(t.Context(), program, "org", "add", "Acme", "--username", "acme", "--password", password, "--environment", "sandbox")
	add.Env, add.Dir = env, dir
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	serve := exec.Command(program, "serve", "--environment", "sandbox", "--log-level", "warn", "--listen", "127.0.0.1:0")
	serve.Env, serve.Dir, serve.Stderr = env, dir, os.Stderr
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		serve.Process.Signal(syscall.SIGTERM)
		serve.Wait()
	})

	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address, found := strings.CutPrefix(lines.Text(), "listening on "); found {
			return address
		}
	}

	t.Fatal("flexd does not listen")

	return ""
}

// connect logs in, and returns a client that bears the token.
func connect(t *testing.T, address string) *generated.ClientWithResponses {
	t.Helper()
	token := ""
	bear := func(_ context.Context, r *http.Request) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}

	c, err := generated.NewClientWithResponses(address, generated.WithRequestEditorFn(bear))
	if err != nil {
		t.Fatal(err)
	}

	form := generated.BodyLoginForAccessTokenFormAuthTokenFormPost{Username: "acme", Password: password}
	login, err := c.LoginForAccessTokenFormAuthTokenFormPostWithFormdataBodyWithResponse(t.Context(), form)
	if err != nil || login.JSON200 == nil {
		t.Fatalf("login: %v %v", login, err)
	}
	token = login.JSON200.AccessToken

	return c
}

// answer is an answer whose success is decoded into V.
type answer[V any] interface {
	StatusCode() int
	GetBody() []byte
	GetJSON200() *V
}

// must ends the test unless the call succeeded and its answer was decoded.
func must[V any, A answer[V]](t *testing.T, what string, a A, err error) V {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if a.GetJSON200() == nil {
		t.Fatalf("%s: %d %s", what, a.StatusCode(), a.GetBody())
	}
	return *a.GetJSON200()
}

// TestStory registers a home, plugs its car in, and reads what was planned, with every answer
// decoded into the generated types.
func TestStory(t *testing.T) {
	c, ctx := connect(t, sandbox(t)), t.Context()

	power, street, email, evening := float32(7.4), "1 Sandbox Street", "resident@example.com", "18:00:00"
	consent := time.Date(2026, time.January, 15, 10, 30, 0, 0, time.UTC)
	made, err := c.OnboardEntitiesSiteOnboardPostWithResponse(ctx, nil, generated.OnboardRequest{
		Site:        generated.SiteRequest{Mpan: "1099000010005", Postcode: "ZZ99 1AA", StreetAddress: &street, Email: &email, GaveBoundaryMeterConsentAt: &consent},
		Assets:      []generated.OnboardingAssetRequest{{ExternalId: "my-charger", Type: "charger", Properties: &generated.AssetProperties{PowerKw: &power}}},
		Proposition: "full_asset_schedule_control",
	})
	onboarded := must[generated.OnboardResponse](t, "onboard", made, err)
	asset := onboarded.Assets[0].AssetId

	turned, err := c.SetClockWithResponse(ctx, nil, generated.ClockRequest{LocalTime: &evening})
	clock := must[generated.ClockResponse](t, "clock", turned, err)

	zone, hours, mode := "Europe/London", "00:00-05:30, 23:30-24:00", generated.ChargingMode("minimise_charging_time")
	plugged, err := c.AssetPlugInEventEntitiesAssetAssetIdEventPlugInPostWithResponse(ctx, asset, nil, generated.PlugInEventRequest{
		Tariff: &generated.Tariff{OffPeakTimes: hours, Timezone: zone},
		Intent: &generated.Intent{EnergyRequiredKwh: 20, ReadyBy: consent, ChargingMode: &mode},
	})
	if err != nil || plugged.StatusCode() != http.StatusOK {
		t.Fatalf("plug-in: %v %v", plugged, err)
	}

	planned, err := c.GetScheduleWithResponse(ctx, asset, nil)
	plan := must[generated.ScheduleResponse](t, "schedule", planned, err)
	if len(plan.Periods) < 2 || plan.ReadyBy == nil || !plan.ReadyBy.After(clock.Now) {
		t.Errorf("the plan is %+v", plan)
	}

	priced, err := c.GetPriceCurveEntitiesAssetAssetIdPriceCurveGetWithResponse(ctx, asset)
	curve := must[generated.PriceCurveResponse](t, "price curve", priced, err)
	if len(curve.HalfHourlyTradedPrices) == 0 {
		t.Error("no prices")
	}

	end := clock.Now.Truncate(30 * time.Minute)
	sent, err := c.PostReadingsDataReadingsPostWithResponse(ctx, nil, generated.ReadingsDataPoints{Readings: []generated.ReadingDataPoint{{
		AssetId: asset, Label: "charger_consumption_energy_kwh", StartTimestamp: end.Add(-30 * time.Minute), EndTimestamp: end,
	}}})
	verdicts := must[generated.ReadingsResponse](t, "readings", sent, err)
	if len(verdicts.Responses) != 1 || !verdicts.Responses[0].Accepted {
		t.Errorf("verdicts %+v", verdicts)
	}

	money, err := c.GetBalanceInfoRewardsSiteIdInfoGetWithResponse(ctx, onboarded.Site.SiteId)
	must[generated.BalanceInfoResponse](t, "balance", money, err)

	none, err := c.GetAssetEntitiesAssetAssetIdGetWithResponse(ctx, generated.AssetResponse{}.Id)
	if err != nil || none.StatusCode() != http.StatusNotFound || none.JSON404 == nil || fmt.Sprint(none.JSON404.Detail) == "" {
		t.Errorf("an asset that is none: %+v, %v", none, err)
	}
}
