// The fleet page's plot, and its numbers as they change.
import { axis, colour, draw, momentText, one, seconds, stepped, timeAxis } from "./plot.js";

const figure = document.querySelector("[data-plot=fleet]");

const rows = (fleet) => {
  const hours = fleet.half_hours;
  const last = hours.at(-1);
  const end = (Math.floor(seconds(last.start) / 1800) + 1) * 1800; // a step is drawn to its end
  const column = (name) => [...hours.map((h) => h[name]), last[name]];
  return [[...hours.map((h) => seconds(h.start)), end], column("lowest_kw"), column("highest_kw"), column("without_flexd_kw"), column("planned_kw")];
};

const options = () => ({
  height: 320,
  scales: { x: { time: true }, y: { range: (u, lo, hi) => [0, Math.max(hi * 1.08, 1)] } },
  axes: [timeAxis(), axis("kW")],
  series: [
    { label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) },
    { label: "At least", stroke: "transparent", paths: stepped(), value: one, points: { show: false } },
    { label: "At most", stroke: "transparent", paths: stepped(), value: one, points: { show: false } },
    { label: "Without flexd", stroke: colour("--plain"), dash: [5, 4], width: 1.5, paths: stepped(), value: one, points: { show: false } },
    { label: "Planned", stroke: colour("--plan"), width: 2.25, paths: stepped(), value: one, points: { show: false } },
  ],
  bands: [{ series: [2, 1], fill: colour("--band") }],
});

const show = (fleet) => {
  const asOf = document.querySelector("[data-as-of] time");
  const at = new Date(fleet.now);
  asOf.dateTime = fleet.now;
  asOf.title = at.toLocaleString("en-GB", { timeZone: "Europe/London", dateStyle: "full", timeStyle: "long" });
  asOf.textContent = at.toLocaleString("en-GB", { timeZone: "Europe/London", weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  for (const element of document.querySelectorAll("[data-live]")) {
    const [name, unit] = element.dataset.live.split(" ");
    const text = fleet[name].toLocaleString("en-GB", { maximumFractionDigits: 1 }) + (unit ? ` ${unit}` : "");
    if (element.textContent !== text) element.textContent = text;
  }
};

if (figure) {
  const fleet = await (await fetch(figure.dataset.source)).json();
  const plot = draw(figure, options, rows(fleet));
  figure.dataset.drawn = "yes";
  const stream = new EventSource(figure.dataset.stream);
  stream.onmessage = (event) => {
    const now = JSON.parse(event.data);
    show(now);
    plot.set(rows(now));
  };
}
