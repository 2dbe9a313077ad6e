// The asset page: its plot, the replay of its schedules, and what if.
import { axis, clockText, colour, column, draw, join, momentText, number, one, pounds, stepped, timeAxis } from "./plot.js";
import { label } from "./page.js";

const figure = document.querySelector("[data-plot=asset]");
const note = document.querySelector("[data-note]");

let shown; // the series
let chosen = null; // the schedule that is replayed, with the prices that it was made on
let supposed = null; // the plan of what if

const priced = (pairs) => pairs.filter(([, price]) => price != null).map(([from, price]) => [from, from + 1800, price]);

// then are the prices that the replayed schedule was made on. They are drawn beside those of now, which
// may have come since.
const then = () => (chosen ? priced(shown.curves[chosen.curve] ?? []) : []);

// points are the instants and values of what the asset holds.
const points = (pairs) => [pairs.map(([at]) => at), pairs.map(([, value]) => value)];
const held = () => shown.level.read.length + shown.level.expected.length > 0;
const degrees = (u, v) => (v == null ? "–" : `${number(v)} ${shown.level.unit}`);
const level = (label, stroke, more = {}) => ({ label, stroke, width: 1.75, value: degrees, scale: "level", spanGaps: true, show: held(), ...more });

const rows = () => join([priced(shown.prices), then(), shown.plan, shown.readings, chosen?.plan ?? [], supposed ?? []].map(column).concat([points(shown.level.read), points(shown.level.expected)]), shown.from);

// under draws what lies behind the lines: off-peak time, now, ready-by and the marks.
const under = (u) => {
  const { ctx, bbox } = u;
  const at = (t) => Math.round(u.valToPos(t, "x", true));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("--night");
  for (const [from, to] of shown.off_peak) ctx.fillRect(at(from), bbox.top, at(to) - at(from), bbox.height);
  const vertical = (t, stroke, dash) => {
    ctx.strokeStyle = stroke;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash(dash.map((d) => d * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(at(t), bbox.top);
    ctx.lineTo(at(t), bbox.top + bbox.height);
    ctx.stroke();
  };
  for (const t of shown.ready_by) vertical(t, colour("--mark"), [6, 4]);
  vertical(shown.now, colour("--soft"), []);
  ctx.setLineDash([]);
  ctx.restore();
};

// marks are how far down and in what colour each kind of them stands.
const marks = { event: [10, "--ink"], schedule: [22, "--plan"], push: [34, "--price"], callback: [46, "--actual"] };

const over = (u) => {
  const { ctx, bbox } = u;
  const size = 4.5 * devicePixelRatio;
  ctx.save();
  for (const m of shown.marks) {
    const x = u.valToPos(m.at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const [line, fill] = marks[m.kind];
    const y = bbox.top + line * devicePixelRatio;
    ctx.fillStyle = colour(fill);
    ctx.beginPath();
    if (m.kind === "event") ctx.arc(x, y, size, 0, 2 * Math.PI);
    else if (m.kind === "schedule") ctx.rect(x - size, y - size, 2 * size, 2 * size);
    else if (m.kind === "callback") { ctx.moveTo(x, y - size); ctx.lineTo(x + size, y); ctx.lineTo(x, y + size); ctx.lineTo(x - size, y); }
    else { ctx.moveTo(x, y - size); ctx.lineTo(x + size, y + size); ctx.lineTo(x - size, y + size); }
    ctx.fill();
  }
  ctx.restore();
};

const nearest = (u) => {
  const { left } = u.cursor;
  let best = null, distance = 9;
  for (const m of shown.marks) {
    const d = Math.abs(u.valToPos(m.at, "x") - left);
    if (d < distance) [best, distance] = [m, d];
  }
  const near = best && shown.marks.filter((m) => Math.abs(u.valToPos(m.at, "x") - left) <= distance + 1);
  note.textContent = near ? near.map((m) => `${clockText(m.at)} ${m.text}`).join(" ") : "Point at a mark to read what happened: circles are events, squares schedules, triangles pushes, diamonds callbacks.";
};

const line = (label, stroke, more = {}) => ({ label, stroke, width: 2, paths: stepped(), value: one, points: { show: false }, scale: "kW", ...more });

const options = () => ({
  height: 380,
  scales: { x: { time: true, range: () => [shown.from, shown.to] }, kW: { range: (u, lo, hi) => [Math.min(0, lo ?? 0), Math.max((hi ?? 0) * 1.25, 1)] }, price: { auto: true }, level: { range: (u, lo, hi) => (shown.level.unit === "%" ? [0, 100] : [Math.floor((lo ?? 15) - 1), Math.ceil((hi ?? 25) + 1)]) } },
  axes: [timeAxis(), axis("kW", { scale: "kW" }), axis("£/MWh", { scale: "price", side: 1, grid: { show: false }, stroke: colour("--price") }), axis(shown.level.unit, { scale: "level", side: 1, grid: { show: false }, stroke: colour("--level"), show: held() && figure.clientWidth > 600 })],
  series: [
    { label: "From", value: (u, v) => (v == null ? "–" : momentText(v)) },
    line("Price", colour("--price"), { scale: "price", width: 1.5, value: (u, v) => (v == null ? "–" : pounds(v)) }),
    line("Price it was made on", colour("--ink"), { scale: "price", width: 1.5, dash: [2, 2], show: chosen != null, value: (u, v) => (v == null ? "–" : pounds(v)) }),
    line("Plan", colour("--plan"), { fill: colour("--plan-wash") }),
    line("Metered", colour("--actual")),
    line("Replayed", colour("--ink"), { dash: [3, 3], show: chosen != null }),
    line("What if", colour("--mark"), { dash: [8, 4], show: supposed != null }),
    level(shown.level.unit === "%" ? "State of charge" : "Temperature", colour("--level"), { points: { show: true, size: 5, fill: colour("--level") } }),
    level(shown.level.unit === "%" ? "State of charge, expected" : "Temperature, expected", colour("--level"), { dash: [5, 4], points: { show: false } }),
  ],
  hooks: { drawClear: [under], draw: [over], setCursor: [nearest] },
});

const source = new URL(figure.dataset.source, location.href);
shown = await (await fetch(source)).json();
const plot = draw(figure, options, rows());
figure.dataset.drawn = "yes";

const renew = () => { plot.set(rows(), true); plot.redraw(); };

// The slider replays the schedules of the session; the list stays for those without a script.
const slider = document.querySelector("[data-replay]");
if (slider) {
  const list = document.querySelector("#generation-of");
  slider.hidden = false;
  list.form.querySelector("button").hidden = true;
  const show = async (i) => {
    const g = shown.generations[i];
    if (!g) return;
    slider.value = i;
    list.selectedIndex = i;
    chosen = i === shown.generations.length - 1 ? null : g;
    renew();
    const address = `${location.pathname}/why?schedule=${g.event_id}`;
    const answer = await fetch(address);
    if (!answer.ok || +slider.value !== i) return;

    const why = document.querySelector("[data-why]");
    why.innerHTML = await answer.text();
    label(why);
  };
  slider.addEventListener("input", () => show(+slider.value));
  list.addEventListener("change", () => show(list.selectedIndex));
}

// What if: the question is asked anew as the sliders move.
const form = document.querySelector("[data-what-if]");
if (form) {
  const answer = document.querySelector("[data-answer]");
  form.querySelector("button").hidden = true;
  let asking = 0;
  const ask = async () => {
    const mine = ++asking;
    for (const input of form.querySelectorAll("input[type=range]")) {
      form.querySelector(`output[for=${input.id}]`).textContent = `${input.value} ${input.dataset.unit}`;
    }
    const response = await fetch(`${form.dataset.whatIf}?${new URLSearchParams(new FormData(form))}`);
    if (mine !== asking || !response.ok) return;
    const said = await response.json();
    if (mine !== asking) return;
    for (const cell of answer.querySelectorAll("[data-cell]")) {
      const words = cell.dataset.cell.split(" ");
      const unit = words.pop();
      const value = words.reduce((v, name) => v[name], said);
      const more = words[0].includes("difference") && value >= 0.05 ? "+" : "";
      cell.textContent = `${more}${number(value)} ${unit}`;
    }
    answer.hidden = false;
    supposed = said.proposed.plan;
    renew();
  };
  form.addEventListener("input", ask);
  form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
}
