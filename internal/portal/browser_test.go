package portal_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"flexd/test/axe"
	"flexd/test/browser"

	"flexd/internal/reward"
)

// rules hold for every page on a phone, whatever its language and colours.
var rules = map[string]string{
	"one h1":                        `document.querySelectorAll("h1").length === 1`,
	"every control has a name":      `[...document.querySelectorAll("input:not([type=hidden]),progress")].every((c) => c.labels.length > 0 && c.labels[0].textContent.trim() || c.ariaLabel)`,
	"every button has a name":       `[...document.querySelectorAll("button,a")].every((c) => c.textContent.trim().length > 0)`,
	"every table has headings":      `[...document.querySelectorAll("main table")].every((t) => t.querySelector("th"))`,
	"no two elements share an id":   `new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length`,
	"headings do not skip a level":  `[...document.querySelectorAll("h1,h2,h3")].reduce((ok, h, i, all) => ok && (i === 0 || +h.tagName[1] <= +all[i-1].tagName[1] + 1), true)`,
	"nothing is wider than a phone": `document.documentElement.scrollWidth <= document.documentElement.clientWidth`,
	"a thumb meets every button":    `[...document.querySelectorAll("button,.button,summary")].every((b) => !b.getClientRects().length || b.getBoundingClientRect().height >= 44)`,
	"every picture has a text":      `[...document.querySelectorAll("[role=img]")].every((i) => i.ariaLabel)`,
}

// shots says where pictures of the household's pages go: go test ./internal/portal -run Phone -shots FOLDER
var shots = flag.String("shots", "", "write a picture of every page on a phone to this folder")

// shoot takes a picture of the page that is shown.
func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if *shots == "" {
		return
	}
	height, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`document.documentElement.scrollHeight`))
	if err != nil {
		t.Fatal(err)
	}

	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng,
		CaptureBeyondViewport: new(true), Clip: &page.Viewport{Width: 390, Height: height, Scale: 1}})
	if err == nil {
		err = os.WriteFile(filepath.Join(*shots, name+".png"), shot.Data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// phone opens a tab of a browser as wide as a phone.
func phone(t *testing.T) context.Context {
	t.Helper()
	ctx := browser.Tab(t)

	size := emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 1, Mobile: true}
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, size); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// broken lists the rules that a page breaks.
func broken(t *testing.T, ctx context.Context, address string) (found []string) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS("main"))); err != nil {
		t.Fatal(err)
	}

	for rule, expression := range rules {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err != nil {
			t.Fatal(err)
		}
		if !holds {
			found = append(found, rule)
		}
	}

	if axe.Wanted() && !strings.HasPrefix(address, "data:") {
		violations, err := axe.Violations(ctx)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, violations...)
	}
	return found
}

// Every page of a household with a plan, in both languages, is fit for a phone and a screen reader.
func TestHousehold_Phone(t *testing.T) {
	tab := phone(t)
	eachEvening(t, func(t *testing.T, e *evening) {
		e.Consent(e.now.Add(-time.Hour))
		e.give(t, "a bonus", 160)
		e.plugIn(t)
		e.invite(t, "DFS-1", -5_000, false)
		for _, language := range []string{"en", "de"} {
			for _, path := range []string{"", "/history", "/statement", "/consent", "/consent?kind=full_asset_schedule_control", "/account", "/nowhere"} {
				mark := "?"
				if path == "/consent?kind=full_asset_schedule_control" {
					mark = "&"
				}

				link := e.link(t, reward.LinkOptions{})
				if found := broken(t, tab, fmt.Sprintf("%s%s%slang=%s", link, path, mark, language)); len(found) > 0 {
					t.Errorf("%s in %s: not so: %q", path, language, found)
				}
				shoot(t, tab, "household"+strings.NewReplacer("/", "-", "?kind=full_asset_schedule_control", "-withdraw").Replace(path)+"-"+language)
			}
		}
	})
}

// A page that breaks the rules is found out.
func TestBroken(t *testing.T) {
	tab := phone(t)
	found := broken(t, tab, `data:text/html,<meta name="viewport" content="width=device-width"><main><h1>a</h1><h3>b</h3><h1>c</h1><input id="x"><p style="width:600px" id="x">d</p><button style="height:10px"></button><i role="img"></i><table></table></main>`)
	if len(found) != len(rules) {
		t.Errorf("found %q, want every rule", found)
	}
}
