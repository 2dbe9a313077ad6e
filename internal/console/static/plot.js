// Plots in the page's own colours. A plot is a figure with data-plot; its numbers come from
// the JSON that the page names, and are also on the page as a table.

const { uPlot } = window;

// colour reads a colour that the style sheet names.
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// london turns seconds into a date that reads as the clocks in Britain do.
export const london = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Europe/London");

const clock = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/London", hour: "2-digit", minute: "2-digit" });
const moment = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/London", weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

const second = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/London", weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });

const zone = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/London", hour: "2-digit", timeZoneName: "short" });

// zoned adds BST or GMT in the hour that comes twice, on the night when the clocks go back.
const zoned = (at, text) => {
  const twice = [-3600e3, 3600e3].some((step) => clock.format(new Date(at.getTime() + step)) === clock.format(at));
  return twice ? `${text} ${zone.formatToParts(at).find(({ type }) => type === "timeZoneName").value}` : text;
};

const written = (format) => (seconds) => { const at = new Date(seconds * 1000); return zoned(at, format.format(at)); };
export const clockText = written(clock);
export const momentText = written(moment);
export const stampText = written(second);

// number writes a number as the pages do: thousands apart by a thin space, a true minus, none before nothing.
const rounded = (v, digits) => (Math.abs(v) * 10 ** digits < 0.5 ? 0 : v);
export const number = (v, digits = 1) => rounded(v, digits).toLocaleString("en-GB", { maximumFractionDigits: digits }).replaceAll(",", "\u202f").replace("-", "−");

// pounds is an amount of money, with a true minus before it.
export const pounds = (v) => `${v <= -0.005 ? "−" : ""}£${Math.abs(v).toFixed(2)}`;

// power is so many kW, or MW from one on.
export const power = (kw) => (Math.abs(kw) >= 1000 ? `${number(kw / 1000, 2)} MW` : `${number(kw)} kW`);

export const seconds = (text) => Date.parse(text) / 1000;

// column makes x and y of spans [from, to, value]: a step holds to its end, and where nothing
// follows a gap begins.
export const column = (spans) => {
  const x = [], y = [];
  for (const [from, to, value] of spans) {
    if (x.at(-1) === from) { x.pop(); y.pop(); } else if (x.length > 0) { x.push(x.at(-1) + 1); y.push(null); }
    x.push(from, to);
    y.push(value, value);
  }
  return [x, y];
};

// join aligns columns on one time axis. A gap lasts until its column goes on, whatever others have in between.
export const join = (columns, from) => uPlot.join(
  columns.map(([x, y]) => (x.length > 0 ? [x, y] : [[from], [null]])),
  columns.map(() => [2, 2]), // nulls are widened
);

export const stepped = () => uPlot.paths.stepped({ align: 1 });

// axes of time and of one quantity.
export const timeAxis = () => ({
  stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 },
  font: "12px system-ui, sans-serif", space: 64,
  values: [
    [86400 * 28, "{MMM}", null, null, null, null, null, null, 1],
    [86400, "{D} {MMM}", null, null, null, null, null, null, 1],
    [3600, "{HH}:{mm}", "\n{WWW} {D} {MMM}", null, "\n{WWW} {D} {MMM}", null, null, null, 1],
    [60, "{HH}:{mm}", "\n{WWW} {D} {MMM}", null, "\n{WWW} {D} {MMM}", null, null, null, 1],
  ],
});
export const axis = (label, more = {}) => ({
  values: (u, ticks) => ticks.map((v) => (v == null ? "" : number(v, 3))),
  label, labelSize: 18, labelFont: "12px system-ui, sans-serif", labelGap: 0, size: 52, gap: 4,
  stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 },
  font: "12px system-ui, sans-serif", ...more,
});

export const one = (u, v) => (v == null ? "–" : number(v));

// legend keeps the names of series without a value out of the legend, and the values while nothing is pointed at.
const legend = {
  named(u) {
    u.root.querySelectorAll(".u-legend .u-series").forEach((row, i) => {
      row.hidden = i > 0 && !u.data[i].some((v) => v != null);
    });
  },
  pointed(u) { u.root.classList.toggle("idle", u.cursor.idx == null); },
};

// wider takes a gap's last edge in: the rise to the value behind it would be drawn there as a thin line.
const wider = (u, series, from, to, gaps) => gaps.map(([begin, end]) => [begin, end + devicePixelRatio]);

// draw makes a plot in the element and keeps it as wide as its place; options is a function,
// because colours change between light and dark.
export function draw(element, options, data) {
  let plot;
  const make = () => {
    plot?.destroy();
    const o = options();
    // the date at the end of the time axis needs room where no axis stands beside it
    const right = o.axes.some((a) => a.side === 1) ? null : 36;
    const { hooks = {} } = o;
    for (const one of o.series.slice(1)) one.gaps = wider;
    o.hooks = {
      ...hooks,
      setData: [...(hooks.setData ?? []), legend.named],
      setCursor: [...(hooks.setCursor ?? []), legend.pointed],
      ready: [...(hooks.ready ?? []), legend.named, legend.pointed],
    };
    plot = new uPlot({ width: element.clientWidth, padding: [null, right, null, null], tzDate: london, cursor: { drag: { x: true, y: false }, points: { size: 6 } }, ...o }, data, element);
  };
  make();
  new ResizeObserver(() => {
    if (element.clientWidth > 0) plot.setSize({ width: element.clientWidth, height: plot.height });
  }).observe(element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", make);
  return {
    set(next, keep = false) { data = next; plot.setData(next, !keep); },
    redraw() { make(); },
    get plot() { return plot; },
  };
}
