// Package browser opens a tab of Chromium for tests of pages.
package browser

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// places are where Debian's packages have a browser. The first is the one without windows,
// which takes half as much processor time for the same pages.
var places = []string{"/usr/bin/chromium-headless-shell", "/usr/bin/chromium"}

// life bounds how long a tab is open, on however busy a machine.
const life = 5 * time.Minute

// Path returns where the browser is. Without one the test is skipped, or failed when
// FLEXD_TEST_STRICT is set.
func Path(t testing.TB) string {
	t.Helper()
	for _, place := range places {
		if _, err := os.Stat(place); err == nil {
			return place
		}
	}

	if os.Getenv("FLEXD_TEST_STRICT") != "" {
		t.Fatalf("none of %v is there, and FLEXD_TEST_STRICT forbids to skip", places)
	}
	t.Skipf("none of %v is there: apt-get install chromium-headless-shell", places)

	return ""
}

// Options returns how to start the browser at path: without windows, and with its files in the
// folder profile.
func Options(path, profile string) []chromedp.ExecAllocatorOption {
	return []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.Headless,
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(time.Minute),
		chromedp.CombinedOutput(io.Discard),
	}
}

// Tab opens a tab of a browser of its own, which ends with the test. Without a browser the test is
// skipped, or failed when FLEXD_TEST_STRICT is set.
func Tab(t *testing.T) context.Context {
	t.Helper()

	path := Path(t)
	profile, err := os.MkdirTemp("", "flexd-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(profile) }) // the browser may write still

	ctx, end := context.WithTimeout(t.Context(), life)
	t.Cleanup(end)

	ctx, stop := chromedp.NewExecAllocator(ctx, Options(path, profile)...)
	t.Cleanup(stop)

	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)

	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}

	return ctx
}
