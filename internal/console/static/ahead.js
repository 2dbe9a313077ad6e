// The forecast's plot: what comes at least by confidence, and the actual values.
import { axis, colour, draw, momentText, number, seconds, stepped, timeAxis } from "./plot.js";

const figure = document.querySelector("[data-plot=ahead]");
if (figure) {
  const all = await (await fetch(figure.dataset.source)).json();
  const lines = all.filter((l) => l.kind === figure.dataset.kind);
  const ended = (values) => [...values, values.at(-1)];
  const said = (u, v) => (v == null ? "–" : `${number(v)} kW`);
  const line = (label, stroke, width, dash) => ({ label, stroke: colour(stroke), dash, width, paths: stepped(), value: said, points: { show: false } });
  const quantiles = ["p50", "p80", "p90", "p95", "p99"];
  draw(figure, () => ({
    height: 320,
    scales: { x: { time: true }, y: { range: (u, lo, hi) => [0, Math.max((hi ?? 0) * 1.08, 1)] } },
    axes: [timeAxis(), axis("kW")],
    series: [
      { label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) },
      ...quantiles.map((q, i) => line(q.toUpperCase(), q === "p90" ? "--plan" : "--plain", q === "p90" ? 2.25 : 1.25, [[2, 3], [6, 3], undefined, [4, 4], [1, 2]][i])),
      line("Actual", "--actual", 2),
    ],
  }), [[...lines.map((l) => seconds(l.start)), seconds(lines.at(-1).end)], ...quantiles.map((q) => ended(lines.map((l) => l[`${q}_kw`]))), ended(lines.map((l) => l.came_kw))]);
  figure.dataset.drawn = "yes";
}
