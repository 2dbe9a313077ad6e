package console_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"flexd/test/axe"
	browsers "flexd/test/browser"
)

// shots is the folder for the screenshots of the screens: go test ./internal/console -run
// Screens -shots ../../docs/img
var shots = flag.String("shots", "", "write a screenshot of every screen to this folder")

// browser is a tab of a real browser that is logged in to a console. It fails its test if a
// page reports an error, or requests something from another host.
type browser struct {
	*service
	ctx  context.Context
	base string

	provider string // the one other site that pages may lead to

	mu     sync.Mutex
	faults []string
}

// sharedBrowser is the browser that all tests share, each in a tab of its own.
var sharedBrowser struct {
	once sync.Once
	ctx  context.Context
	err  error
	end  func()
}

// startBrowser starts the shared browser at path, if it does not run yet. endBrowser ends it.
func startBrowser(path string) (context.Context, error) {
	sharedBrowser.once.Do(func() {
		profile, err := os.MkdirTemp("", "flexd-browser-")
		if err != nil {
			sharedBrowser.err = err
			return
		}

		options := append(
			browsers.Options(path, profile),
			chromedp.Flag("hide-scrollbars", true),
			chromedp.WindowSize(1280, 900),
		)
		ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, close := chromedp.NewContext(ctx)

		sharedBrowser.end = func() { close(); stop(); os.RemoveAll(profile) }
		sharedBrowser.ctx, sharedBrowser.err = ctx, chromedp.Do(ctx)
	})

	return sharedBrowser.ctx, sharedBrowser.err
}

func endBrowser() {
	if sharedBrowser.end != nil {
		sharedBrowser.end()
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	endBrowser()
	os.Exit(code)
}

// patience is how long a page may take to what must come, on however busy a machine.
const patience = time.Minute

// tabMost is how long a test may use its tab, however busy the machine is: some tests open
// fifty pages, and check each with axe.
const tabMost = 20 * time.Minute

// browse opens a tab. Without a browser the test is skipped, or failed when
// FLEXD_TEST_STRICT is set.
func browse(d *service) *browser {
	d.Helper()
	path := browsers.Path(d)
	server := httptest.NewServer(d.handler)
	d.Cleanup(server.Close)
	shared, err := startBrowser(path)
	if err != nil {
		d.Fatalf("start the browser: %v", err)
	}

	ctx, end := context.WithTimeout(shared, tabMost)
	d.Cleanup(end)
	ctx, close := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext()) // with cookies of its own
	d.Cleanup(close)
	b := &browser{service: d, ctx: ctx, base: strings.Replace(server.URL, "127.0.0.1", "localhost", 1)}
	if err := chromedp.Do(ctx); err != nil {
		d.Fatalf("open a tab: %v", err)
	}

	if err := chromedp.Listen(ctx, b.listen); err != nil {
		d.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	if d.cookie != nil {
		call(b, network.SetCookie, network.SetCookieParams{Name: d.cookie.Name, Value: d.cookie.Value, URL: b.base,
			HTTPOnly: new(true), SameSite: network.CookieSameSiteStrict})
	}

	d.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			d.Errorf("the browser reports: %s", f)
		}
	})
	return b
}

func (b *browser) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

func (b *browser) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			b.fault("console %s: %s", e.Type, e.Args[0].Value)
		}
	case *runtime.EventExceptionThrown:
		b.fault("exception: %s", exceptionText(e.ExceptionDetails))

	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.fault("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && !b.mayRequest(e.Request.URL) {
			b.fault("a request to another host: %s", e.Request.URL)
		}
	}
}

func (b *browser) mayRequest(address string) bool {
	return strings.HasPrefix(address, b.base+"/") || b.provider != "" && strings.HasPrefix(address, b.provider+"/")
}

// call runs a command of the protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	b.Helper()
	r, err := chromedp.Call(b.ctx, command, params)
	b.must(err)
	return r
}

// run does something in the tab.
func (b *browser) run(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	b.must(chromedp.Do(b.ctx, steps...))
}

// evaluate returns what an expression is on the page.
func evaluate[T any](b *browser, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	b.must(err)
	return v
}

func (b *browser) must(err error) {
	b.Helper()
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.Fatalf("%v; the browser reports: %v", err, b.faults)
	}
}

// await waits until an expression is true on the page.
func (b *browser) await(expression string) {
	b.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience)))
	b.must(err)
}

// fit waits until the page uses a screen's width and colours: its plots are drawn again some
// frames later. If that does not happen, the checks of the page fail.
func (b *browser) fit(width int64, scheme string) {
	b.Helper()
	fits := fmt.Sprintf(`document.documentElement.clientWidth <= %d && document.documentElement.scrollWidth <= document.documentElement.clientWidth && matchMedia("(prefers-color-scheme: %s)").matches`,
		width, scheme)
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](fits, chromedp.WithPollingTimeout(patience))); err != nil {
		b.Logf("a screen %d wide, %s: %v", width, scheme, err)
	}
}

// visit opens a page and waits until its plots are drawn.
func (b *browser) visit(path string) {
	b.Helper()
	b.run(chromedp.Navigate(b.base + path))
	b.await(`document.querySelector("main") !== null`) // an error page has none
	b.await(`[...document.querySelectorAll("[data-plot]")].every((p) => p.dataset.drawn)`)
}

// text returns what an element shows.
func (b *browser) text(selector string) string {
	b.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS(selector)))
	b.must(err)
	return text
}

// truth evaluates an expression that must be true.
func (b *browser) truth(expression string) {
	b.Helper()
	if !evaluate[bool](b, expression) {
		b.Errorf("not true on the page: %s", expression)
	}
}

// screen opens a page, checks it against the rules for every screen, and takes its picture in
// light, in dark and on a phone.
func (b *browser) screen(name, path string) {
	b.Helper()
	for i, v := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"", 1280, 900, "light"}, {"-dark", 1280, 900, "dark"}, {"-phone", 390, 844, "light"}} {
		call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: v.width, Height: v.height, DeviceScaleFactor: 1, Mobile: v.width < 600})
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: v.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}) // colours change at once

		if i == 0 || *shots != "" {
			b.visit(path)
		}
		b.fit(v.width, v.scheme)
		b.sound(name + v.name)
		if v.width >= 1280 {
			for _, table := range evaluate[[]string](b, sideways) {
				b.Errorf("%s: a table scrolls sideways: %s", name+v.name, table)
			}
		}

		if v.width < 600 {
			b.handy(name + v.name)
		}
		b.contrast(name + v.name)
		if axe.Wanted() {
			found, err := axe.Violations(b.ctx)
			b.must(err)
			for _, f := range found {
				b.Errorf("%s: axe: %s", name+v.name, f)
			}
		}

		if *shots != "" {
			b.shoot(name + v.name)
		}
	}
}

// sound checks a page against the rules for all pages: one heading, named controls, nothing
// wider than the screen.
func (b *browser) sound(name string) {
	b.Helper()
	for rule, expression := range map[string]string{
		"one h1":                          `document.querySelectorAll("h1").length === 1`,
		"every control has a name":        `[...document.querySelectorAll("input:not([type=hidden]),select,textarea")].every((c) => c.labels.length > 0 && c.labels[0].textContent.trim() || c.ariaLabel)`,
		"every button has a name":         `[...document.querySelectorAll("button,a")].every((c) => (c.textContent.trim() || c.ariaLabel || "").length > 0)`,
		"every table has headings":        `[...document.querySelectorAll("main table:not(.u-legend)")].every((t) => t.querySelector("th[scope=col]"))`,
		"no two elements share an id":     `new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length`,
		"headings do not skip a level":    `[...document.querySelectorAll("h1,h2,h3,h4")].reduce((ok, h, i, all) => ok && (i === 0 || +h.tagName[1] <= +all[i-1].tagName[1] + 1), true)`,
		"nothing is wider than the page":  `document.documentElement.scrollWidth <= document.documentElement.clientWidth`,
		"a language and a title":          `document.documentElement.lang === "en-GB" && document.title.endsWith(" · flexd")`,
		"no style or script is inline":    `!document.querySelector("main [onclick], script:not([src])")`,
		"what scrolls can be reached":     `[...document.querySelectorAll(".scroll")].every((s) => s.tabIndex === 0 && s.ariaLabel)`,
		"no tab order of somebody's own":  `!document.querySelector("[tabindex]:not([tabindex='0'],[tabindex='-1'])")`,
		"every image and plot has a text": `[...document.querySelectorAll("img,[role=img]")].every((i) => i.alt || i.ariaLabel)`,
		"no button is cut off":            `[...document.querySelectorAll("button")].every((c) => c.scrollWidth <= c.clientWidth + 1)`,
		"dates are in words":              isoDates + `.length === 0`,
	} {
		if !evaluate[bool](b, expression) {
			b.Errorf("%s: not so: %s (too wide: %v; dates: %v)", name, rule, evaluate[[]string](b, tooWide), evaluate[[]string](b, isoDates))
		}
	}
}

// handy checks a page on a phone. The current section must be visible in the menu, the
// sentences of tables must be on the screen, and controls must have the 24 px of WCAG 2.2,
// except links within a sentence. It waits for that, because the page adapts to its new width
// some frames later.
func (b *browser) handy(name string) {
	b.Helper()
	for rule, expression := range map[string]string{
		"the menu shows where one is":      `(() => { const item = document.querySelector(".menu [aria-current]"); if (!item) return []; const at = item.getBoundingClientRect(); return at.left >= 0 && at.right <= innerWidth ? [] : [item.textContent]; })()`,
		"sentences of tables are in sight": `[...document.querySelectorAll("td.wrap")].filter((c) => c.checkVisibility() && c.getBoundingClientRect().right > innerWidth).map((c) => c.textContent.slice(0, 40))`,
		"a finger meets every control": `[...document.querySelectorAll("header :is(a, button, input), main :is(a, button, select, summary, textarea, input:not([type=hidden]))")]
			.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 23.5 && ![...e.parentElement.childNodes].some((n) => n !== e && n.textContent.trim()))
			.map((e) => e.tagName + " " + (e.textContent || e.name).trim().slice(0, 30) + " " + e.getBoundingClientRect().height)`,
	} {
		settled := chromedp.Poll[bool]("("+expression+").length === 0", chromedp.WithPollingTimeout(patience))
		if _, err := chromedp.Run(b.ctx, settled); err != nil {
			b.Errorf("%s: not so: %s: %q (%v)", name, rule, evaluate[[]string](b, expression), err)
		}
	}
}

// tooWide lists what reaches beyond the page and does not scroll by itself.
const tooWide = `[...document.querySelectorAll("main *, header *, nav *")].filter((e) => !e.parentElement.closest(".scroll,.plot,.body,.menu") && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).slice(0, 5).map((e) => e.tagName + "." + e.className)`

// sideways lists the tables that do not fit, and by how many pixels. Only a map of the 48
// half-hours of a day may be too wide.
const sideways = `[...document.querySelectorAll(".scroll")].filter((s) => s.checkVisibility() && !s.querySelector("table.heat.fine") && s.scrollWidth > s.clientWidth + 1).map((s) => s.ariaLabel + " " + (s.scrollWidth - s.clientWidth))`

// isoDates lists the dates of a page that are written as in programs. Only forms, identifiers
// and code may have such dates.
const isoDates = `[...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() && !e.closest("pre,code,.mono,.body,option") && [...e.childNodes].some((n) => n.nodeType === 3 && /\b20\d\d-\d\d-\d\d\b/.test(n.textContent))).slice(0, 5).map((e) => e.tagName + " " + e.textContent.trim().slice(0, 80))`

// contrast measures the contrast of the page's text with its background. WCAG 2.1 AA requires
// 4.5, or 3 for large text.
func (b *browser) contrast(name string) {
	b.Helper()
	poor := evaluate[[]string](b, `(() => {
		const parse = (c) => {
			const n = c.match(/[\d.]+/g).map(Number);
			return c.startsWith("color(srgb") ? [n[0]*255, n[1]*255, n[2]*255, n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1];
		};
		const over = (a, b) => [0,1,2].map((i) => a[i]*a[3] + b[i]*(1-a[3])).concat(1);
		const light = (c) => { const [r,g,b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v/12.92 : ((v+0.055)/1.055)**2.4; }); return 0.2126*r+0.7152*g+0.0722*b; };
		const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x+0.05)/(y+0.05); };
		const behind = (e) => { let stack = []; for (let n = e; n; n = n.parentElement) { const c = parse(getComputedStyle(n).backgroundColor); if (c[3] > 0) stack.push(c); if (c[3] === 1) break; } return stack.reverse().reduce((under, c) => over(c, under), [255,255,255,1]); };
		const poor = new Set();
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n = walker.nextNode(); n; n = walker.nextNode()) {
			const e = n.parentElement;
			if (!n.textContent.trim() || !e.checkVisibility() || e.closest(".unseen,button:disabled,option,noscript,script")) continue;
			const s = getComputedStyle(e), large = parseFloat(s.fontSize) >= 24 || parseFloat(s.fontSize) >= 18.66 && s.fontWeight >= 700;
			const back = behind(e), front = over(parse(s.color), back), r = ratio(front, back);
			if (r < (large ? 3 : 4.5)) poor.add(e.tagName + "." + e.className + " " + r.toFixed(2) + " " + n.textContent.trim().slice(0, 30));
		}
		return [...poor];
	})()`)

	for _, p := range poor {
		b.Errorf("%s: too little contrast: %s", name, p)
	}
}

// shoot writes a screenshot of the page, as long as it is, up to a few screens.
func (b *browser) shoot(name string) {
	b.Helper()
	size := evaluate[[]float64](b, `[document.documentElement.clientWidth, Math.min(document.documentElement.scrollHeight, 2400)]`)
	shot := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: new(true),
		Clip: &page.Viewport{Width: size[0], Height: size[1], Scale: 1}})
	if err := os.MkdirAll(*shots, 0o755); err != nil {
		b.Fatal(err)
	}

	file, err := os.Create(filepath.Join(*shots, name+".png"))
	if err == nil {
		err = small(file, shot.Data)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// small writes a picture in the colours that it has most of, which is a third of its size.
func small(w io.Writer, data []byte) error {
	whole, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return err
	}
	area, counts := whole.Bounds(), map[color.Color]int{}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[whole.At(x, y)]++
		}
	}

	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	const most = 64
	out := image.NewPaletted(area, color.Palette(colours[:min(len(colours), most)]))
	nearest := map[color.Color]uint8{}
	for c := range counts {
		nearest[c] = uint8(out.Palette.Index(c))
	}

	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[whole.At(x, y)])
		}
	}
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, out)
}

func TestBrowser_Login(t *testing.T) {
	d := newConsole(t, "2026-01-14T21:40:00Z")
	b := browse(d)
	b.visit("/console/audit")
	b.screen("login", "/console/login?next=/console/audit")
	b.visit("/console/audit")
	b.run(chromedp.SendKeys(chromedp.CSS("#name"), operator), chromedp.SendKeys(chromedp.CSS("#password"), password+"\r"),
		chromedp.WaitVisible(chromedp.CSS("table")))
	if h := b.text("h1"); h != "Audit log" {
		t.Errorf("after the login: %q", h)
	}
	b.truth(`document.cookie === ""`) // no script can read the session
	b.run(chromedp.Click(chromedp.CSS(".who button")), chromedp.WaitVisible(chromedp.CSS("#password")))
}

func exceptionText(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text
}
