// The site page's plot: what each device is planned to take, one band on the other, with the home
// itself below them, the main fuse above and the price.
import { axis, colour, draw, momentText, number, stepped, timeAxis } from "./plot.js";

const figure = document.querySelector("[data-plot=site]");
if (figure) {
  const plan = await (await fetch(figure.dataset.source)).json();
  const periods = plan.periods;
  const ended = (all) => [...all, all.at(-1)];
  const starts = [...periods.map((p) => p.start), periods.at(-1).end];

  // What is taken is stacked from the home up; what batteries give lies below zero.
  const sums = [periods.map((p) => Math.max(0, p.home_kw))];
  plan.devices.forEach((_, i) => sums.push(periods.map((p, t) => sums[i][t] + Math.max(0, p.devices_kw[i]))));
  const given = periods.map((p) => p.devices_kw.reduce((sum, kw) => sum + Math.min(0, kw), 0));
  const strokes = ["--plain", "--plan", "--actual", "--mark", "--accent", "--soft"];
  const top = Math.max(...sums.at(-1), plan.fuse_kw != null && plan.fuse_kw < 40 ? plan.fuse_kw : 0, 1) * 1.1;
  const low = Math.min(...given, 0) * 1.1;

  const own = (label, values, i) => ({
    label, stroke: colour(strokes[i % strokes.length]), fill: colour("--band"), width: 1.5, paths: stepped(), points: { show: false },
    value: (u, v, s, t) => (t == null ? "–" : `${number(values[Math.min(t, values.length - 1)])} kW`),
  });
  const line = (label, stroke, dash, unit, scale = "y") => ({
    label, scale, stroke: colour(stroke), dash, width: 1.5, paths: stepped(), points: { show: false }, value: (u, v) => (v == null ? "–" : `${number(v)} ${unit}`),
  });

  draw(figure, () => ({
    height: 320,
    scales: { x: { time: true }, y: { range: [low, top] }, price: {} },
    axes: [timeAxis(), axis("kW"), axis("£/MWh", { scale: "price", side: 1, grid: { show: false } })],
    bands: plan.devices.map((_, i) => ({ series: [i + 2, i + 1] })),
    series: [
      { label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) },
      own("The home itself", periods.map((p) => p.home_kw), 0),
      ...plan.devices.map((name, i) => own(name, periods.map((p) => p.devices_kw[i]), i + 1)),
      line("Given by batteries", "--plan", [2, 3], "kW"),
      line("Main fuse", "--mark", [6, 4], "kW"),
      line("Price", "--price", [], "£/MWh", "price"),
    ],
  }), [starts, ...sums.map(ended), ended(given), starts.map(() => plan.fuse_kw), ended(periods.map((p) => p.price_gbp_per_mwh))]);
  figure.dataset.drawn = "yes";
}
