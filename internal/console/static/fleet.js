// The fleet page's plot, and its numbers as they change.
import { axis, colour, draw, momentText, number, one, power, seconds, stampText, stepped, timeAxis } from "./plot.js";

const figure = document.querySelector("[data-plot=fleet]");

const rows = (fleet) => {
  const hours = fleet.half_hours;
  const last = hours.at(-1);
  const end = (Math.floor(seconds(last.start_timestamp) / 1800) + 1) * 1800; // a step is drawn to its end
  const column = (name) => [...hours.map((h) => h[name]), last[name]];
  return [[...hours.map((h) => seconds(h.start_timestamp)), end], column("lowest_kw"), column("highest_kw"), column("without_flexd_kw"), column("planned_kw"), column("battery_dispatch_kw"), column("battery_kw"), column("heat_kw")];
};

const options = () => ({
  height: 320,
  scales: { x: { time: true }, y: { range: (u, lo, hi) => [Math.min(lo * 1.08, 0), Math.max(hi * 1.08, 1)] } },
  axes: [timeAxis(), axis("kW")],
  series: [
    { label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) },
    { label: "At least", class: "value-only", stroke: "transparent", paths: stepped(), value: one, points: { show: false } },
    { label: "At most", class: "value-only", stroke: "transparent", paths: stepped(), value: one, points: { show: false } },
    { label: "Without flexd", stroke: colour("--plain"), dash: [5, 4], width: 1.5, paths: stepped(), value: one, points: { show: false } },
    { label: "Planned", stroke: colour("--plan"), width: 2.25, paths: stepped(), value: one, points: { show: false } },
    { label: "Batteries, dispatched", stroke: colour("--good"), dash: [6, 3], width: 1.5, paths: stepped(), value: one, points: { show: false } },
    { label: "Batteries", stroke: colour("--good"), width: 1.5, paths: stepped(), value: one, points: { show: false } },
    { label: "Tanks and heat pumps", stroke: colour("--price"), width: 1.5, paths: stepped(), value: one, points: { show: false } },
  ],
  bands: [{ series: [2, 1], fill: colour("--band") }],
});

// The list of exceptions, as the server writes it into the page.
const list = document.querySelector(".exceptions");
const element = (name, className, ...children) => {
  const e = document.createElement(name);
  if (className) e.className = className;
  e.append(...children);
  return e;
};

const exception = (x) => {
  const level = x.level === "critical" ? "bad" : "warn";
  const body = element("div", "", element("p", "", x.text));
  if (x.assets) {
    const row = element("p", "row");
    for (const a of x.assets) {
      const link = element("a", "", a.external_id);
      link.href = `/console/assets/${a.asset_id}`;
      row.append(link, " ");
    }
    if (x.more) row.append(element("span", "hint", `and ${x.more} more`));
    body.append(row);
  }
  if (x.see) {
    const link = element("a", "", "See them");
    link.href = x.see;
    body.append(element("p", "", link));
  }
  const details = element("details", `exception ${level}`, element("summary", "", element("span", `tag ${level}`, x.level), ` ${x.title}`), body);
  details.id = x.kind;
  details.dataset.kind = x.kind;
  return details;
};

// What the page names, and what is to be named. Between its writing and the first of the stream an exception may have come or gone.
const named = (exceptions, kinds) => [...exceptions.map((x) => `${x.level} ${x.kind} ${x.title}`), kinds].join("\n");
const unread = document.querySelector("[data-unread]");
const written = () => [...[...list.querySelectorAll("details")].map((d) => {
  const [tag, title] = d.querySelector("summary").childNodes;
  return `${tag.textContent} ${d.dataset.kind} ${title.textContent.trim()}`;
}), unread.querySelector("span").textContent].join("\n");

let listed = "";
const showExceptions = (exceptions, kinds) => {
  const text = JSON.stringify([exceptions, kinds]);
  if (!list || text === listed) return;
  const first = listed === "";
  listed = text;
  if (first && written() === named(exceptions, kinds)) return; // the page was just written with them
  const open = new Set([...list.querySelectorAll("details[open]")].map((d) => d.dataset.kind));
  unread.hidden = kinds === "";
  unread.querySelector("span").textContent = kinds;
  const good = exceptions.length || kinds ? [] : [element("p", "notice good", list.dataset.good)]; // nothing is known of a kind that is unread
  list.replaceChildren(...exceptions.map(exception), ...good);
  for (const d of list.querySelectorAll("details")) d.open = open.has(d.dataset.kind);
};

// A page that hears nothing says so: what it shows may be old.
const silence = 10_000; // ms, five of the server's beats
let heard = Date.now();
const stale = element("p", "notice bad");
stale.hidden = true;
stale.setAttribute("role", "status");
document.querySelector("[data-as-of]")?.after(stale);
const watch = () => {
  const quiet = Date.now() - heard > silence;
  if (quiet && stale.hidden) stale.textContent = "Not live: the server has sent nothing for some time. What is shown may be old.";
  stale.hidden = !quiet;
  document.body.classList.toggle("stale", quiet);
};

// An empty plot says so, and where the past is.
const idle = document.querySelector("[data-idle]");
const planned = (h) => h.planned_kw || h.without_flexd_kw || h.battery_dispatch_kw || h.battery_kw || h.heat_kw;

const show = (fleet) => {
  showExceptions(fleet.exceptions, (fleet.unread ?? []).join(", "));
  if (idle) idle.hidden = fleet.half_hours.some(planned);
  const asOf = document.querySelector("[data-as-of] time");
  const at = new Date(fleet.now);
  asOf.dateTime = fleet.now;
  asOf.title = at.toLocaleString("en-GB", { timeZone: "Europe/London", dateStyle: "full", timeStyle: "long" });
  asOf.textContent = stampText(at.getTime() / 1000);
  for (const element of document.querySelectorAll("[data-live]")) {
    const [name, unit] = element.dataset.live.split(" ");
    const text = unit ? power(fleet[name]) : number(fleet[name]);
    if (element.textContent !== text) element.textContent = text;
  }
};

if (figure) {
  let plot;
  const take = (fleet) => {
    if (plot) plot.set(rows(fleet));
    else plot = draw(figure, options, rows(fleet));
    figure.dataset.drawn = "yes";
  };
  setInterval(watch, 1000);

  // A browser asks again by itself where a stream breaks, and never again where it is refused, as by a database that is away
  // for a moment or while too many pages watch.
  const again = 10_000; // ms
  const listen = () => {
    const stream = new EventSource(figure.dataset.stream);
    stream.addEventListener("beat", () => { heard = Date.now(); });
    stream.onmessage = (event) => {
      heard = Date.now();
      const now = JSON.parse(event.data);
      show(now);
      take(now);
    };
    stream.onerror = () => { if (stream.readyState === EventSource.CLOSED) setTimeout(listen, again); };
  };

  // Where the first numbers cannot be had, those of the stream are the first.
  try {
    const answer = await fetch(figure.dataset.source);
    if (answer.ok) take(await answer.json());
  } catch (error) {
    console.warn(error);
  }
  listen();
}
