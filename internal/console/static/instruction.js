// The instruction page's plot: the target against what is expected and what was metered.
import { axis, colour, draw, momentText, number, seconds, stepped, timeAxis } from "./plot.js";

const figure = document.querySelector("[data-plot=instruction]");
if (figure) {
  const lines = await (await fetch(figure.dataset.source)).json();
  const starts = lines.map((l) => seconds(l.start));
  const target = lines.map((l) => l.baseline_kwh + l.asked_kwh);
  const ended = (all) => [...all, all.at(-1)];
  const said = (u, v) => (v == null ? "–" : `${number(v)} kWh`);
  const line = (label, stroke, dash) => ({ label, stroke: colour(stroke), dash, width: 2, paths: stepped(), value: said, points: { show: false } });
  draw(figure, () => ({
    height: 300,
    scales: { x: { time: true }, y: { range: (u, lo, hi) => [Math.min(0, lo ?? 0), Math.max((hi ?? 0) * 1.1, 0.1)] } },
    axes: [timeAxis(), axis("kWh")],
    series: [
      { label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) },
      line("Target", "--plain", [5, 4]),
      line("Expected", "--plan"),
      line("Metered", "--actual"),
    ],
  }), [[...starts, seconds(lines.at(-1).end)], ended(target), ended(lines.map((l) => l.expected_kwh)), ended(lines.map((l) => l.metered_kwh))]);
  figure.dataset.drawn = "yes";
}
