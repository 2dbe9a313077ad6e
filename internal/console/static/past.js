// The plot of a day of the fleet's past, with the day before and a week before.
import { axis, colour, draw, momentText, one, seconds, stepped, timeAxis } from "./plot.js";

const figure = document.querySelector("[data-plot=past]");
if (figure) {
  const hours = await (await fetch(figure.dataset.source)).json();
  const column = (name) => { const v = hours.map((h) => h[name]); return [...v, v.at(-1)]; }; // a step is drawn to its end
  const starts = hours.map((h) => seconds(h.start));
  const batteries = hours.some((h) => h.battery_planned_kw || h.battery_metered_kw);
  const heaters = hours.some((h) => h.heat_planned_kw || h.heat_metered_kw);
  const capped = hours.some((h) => h.cap_kw != null);
  const line = (name, label, stroke, more = {}) => ({ name, label, stroke: colour(stroke), width: 1.25, paths: stepped(), value: one, points: { show: false }, ...more });
  const lines = () => [
    line("without_flexd_kw", "Without flexd", "--plain", { dash: [5, 4], width: 1.5 }),
    line("planned_kw", "Planned", "--plan", { width: 2.25 }),
    line("metered_kw", "Metered", "--actual", { width: 2 }),
    line("day_before_metered_kw", "Metered the day before", "--actual", { dash: [2, 3] }),
    line("week_before_metered_kw", "Metered a week before", "--actual", { dash: [8, 3] }),
    line("day_before_planned_kw", "Planned the day before", "--plan", { dash: [2, 3], show: false }),
    line("week_before_planned_kw", "Planned a week before", "--plan", { dash: [8, 3], show: false }),
    ...(capped ? [line("cap_kw", "Cap", "--mark", { dash: [10, 4], width: 1.5 })] : []),
    ...(batteries ? [line("battery_planned_kw", "Batteries, dispatched", "--good", { dash: [6, 3] }), line("battery_metered_kw", "Batteries, metered", "--good", { width: 1.75 })] : []),
    ...(heaters ? [line("heat_planned_kw", "Tanks and heat pumps, planned", "--plain", { dash: [2, 2] }), line("heat_metered_kw", "Tanks and heat pumps, metered", "--plain", { width: 1.75 })] : []),
    line("price_gbp_per_mwh", "£/MWh", "--price", { scale: "price", dash: [1, 2] }),
  ];
  const names = lines().map((l) => l.name);
  draw(figure, () => ({
    height: 320,
    scales: {
      x: { time: true },
      y: { range: (u, lo, hi) => [Math.min(0, (lo ?? 0) * 1.08), Math.max((hi ?? 0) * 1.08, 1)] },
      price: { range: (u, lo, hi) => [Math.min(0, lo ?? 0), Math.max((hi ?? 0) * 1.08, 1)] },
    },
    axes: [timeAxis(), axis("kW"), axis("£/MWh", { scale: "price", side: 1, grid: { show: false } })],
    series: [{ label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) }, ...lines()],
  }), [[...starts, starts.at(-1) + 1800], ...names.map(column)]);
  figure.dataset.drawn = "yes";
}
