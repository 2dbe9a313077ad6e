// The flex event page's plot: baseline against metered, the flex shaded between them.
import { axis, colour, draw, momentText, number, seconds, stepped, timeAxis } from "./plot.js";

const figure = document.querySelector("[data-plot=flexevent]");
if (figure) {
  const lines = await (await fetch(figure.dataset.source)).json();
  const starts = lines.map((l) => seconds(l.start));
  const ended = (name) => [...lines.map((l) => l[name]), lines.at(-1)[name]];
  const said = (u, v) => (v == null ? "–" : `${number(v, 3)} kWh`);
  draw(figure, () => ({
    height: 300,
    scales: { x: { time: true }, y: { range: (u, lo, hi) => [Math.min(0, lo ?? 0), Math.max((hi ?? 0) * 1.1, 0.1)] } },
    axes: [timeAxis(), axis("kWh")],
    series: [
      { label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) },
      { label: "Baseline", stroke: colour("--plain"), dash: [5, 4], width: 2, paths: stepped(), value: said, points: { show: false } },
      { label: "Metered", stroke: colour("--actual"), width: 2, paths: stepped(), value: said, points: { show: false } },
    ],
    bands: [{ series: [1, 2], fill: colour("--plan-wash") }, { series: [2, 1], fill: colour("--plan-wash") }],
  }), [[...starts, starts.at(-1) + 1800], ended("baseline_kwh"), ended("metered_kwh")]);
  figure.dataset.drawn = "yes";
}
