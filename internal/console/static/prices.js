// The prices page's plot: the curve, and what each publication said.
import { axis, colour, column, draw, join, momentText, pounds, seconds, stepped, timeAxis } from "./plot.js";

const figure = document.querySelector("[data-plot=prices]");
if (figure) {
  const day = await (await fetch(figure.dataset.source)).json();
  const starts = day.curve.map((l) => seconds(l.start));
  const spans = (values) => column(values.map((v, i) => [starts[i], starts[i] + 1800, v]).filter(([, , v]) => v != null));
  const older = day.publications.slice(0, 6).toReversed();
  const data = join([...older.map((p) => spans(p.prices_gbp_per_mwh)), spans(day.curve.map((l) => l.price_gbp_per_mwh))], starts[0]);
  const said = (u, v) => (v == null ? "–" : pounds(v));
  const dashes = [[2, 3], [6, 3], [1, 2], [8, 2, 2, 2], [4, 4], [10, 4]];
  draw(figure, () => ({
    height: 320,
    scales: { x: { time: true, range: () => [starts[0], starts.at(-1) + 1800] } },
    axes: [timeAxis(), axis("£/MWh")],
    series: [
      { label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) },
      ...older.map((p, i) => ({ label: `${p.source}, ${momentText(seconds(p.published_at))}`, stroke: colour(i % 2 ? "--actual" : "--plain"), dash: dashes[i], width: 1.25, paths: stepped(), value: said, points: { show: false } })),
      { label: "Curve", stroke: colour("--price"), width: 2.25, paths: stepped(), value: said, points: { show: false } },
    ],
  }), data);
  figure.dataset.drawn = "yes";
}
