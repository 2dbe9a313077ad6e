// Package axe holds pages against the rules of axe-core, which npm has put below test/foreign.
package axe

import (
	"context"
	"fmt"
	"os"

	"github.com/chromedp/chromedp"
)

// Env names the file of axe-core's script. Without it pages are not held against its rules.
const Env = "FLEXD_AXE"

// run has the script look at the page, and notes what it finds.
const run = `(() => {
	window.axeFound = null;
	axe.run(document, {resultTypes: ["violations"]}).then(
		(r) => { window.axeFound = r.violations.map((v) => v.id + ", " + v.nodes.length + " times: " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.html.slice(0, 120)).join(" | ")); },
		(e) => { window.axeFound = ["axe failed: " + e]; });
	return true;
})()`

// Wanted reports whether pages are to be held against the rules.
func Wanted() bool { return os.Getenv(Env) != "" }

// Violations lists the rules that the page of a tab breaks, each with how often and where.
func Violations(tab context.Context) ([]string, error) {
	script, err := os.ReadFile(os.Getenv(Env))
	if err != nil {
		return nil, fmt.Errorf("%s names the script of axe-core: %w", Env, err)
	}

	for _, step := range []string{"typeof axe === 'object' || (() => {" + string(script) + "; return true })()", run} {
		if _, err := chromedp.Run(tab, chromedp.Evaluate[bool](step)); err != nil {
			return nil, err
		}
	}

	_, err = chromedp.Run(tab, chromedp.Poll[bool]("window.axeFound !== null"))
	if err != nil {
		return nil, err
	}

	return chromedp.Run(tab, chromedp.Evaluate[[]string]("window.axeFound"))
}
