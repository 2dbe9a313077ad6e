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

// path is where Debian's package has it.
const path = "/usr/bin/chromium"

// life bounds how long a tab is open, on however busy a machine.
const life = 5 * time.Minute

// Tab opens a tab of a browser of its own, which ends with the test. Without a browser the test is
// skipped, or failed when FLEXD_TEST_STRICT is set.
func Tab(t *testing.T) context.Context {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("FLEXD_TEST_STRICT") != "" {
			t.Fatalf("%s is missing, and FLEXD_TEST_STRICT forbids to skip", path)
		}
		t.Skipf("%s is missing: apt-get install chromium", path)
	}

	profile, err := os.MkdirTemp("", "flexd-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(profile) }) // the browser may write still

	ctx, end := context.WithTimeout(t.Context(), life)
	t.Cleanup(end)

	ctx, stop := chromedp.NewExecAllocator(
		ctx,
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.NoFirstRun,
		chromedp.Headless,
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(time.Minute),
		chromedp.CombinedOutput(io.Discard),
	)
	t.Cleanup(stop)

	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)

	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}

	return ctx
}
