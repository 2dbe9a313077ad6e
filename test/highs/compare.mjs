// Compares flexd's plans of random homes with those of HiGHS. TestHome_Figures has written each home as three programmes,
// of least shortfall, peak energy and cost, each with the best of those before, and what flexd came to.
//
//   node compare.mjs FOLDER [SECONDS]
//
// HiGHS has so many seconds for each programme (10). It is an error where a proven optimum of the cost is below flexd's bound, or where
// both proved one and they differ by more than two millionths of the turnover. Where HiGHS misses less of the needs, or takes less
// peak energy, that is said: flexd proves neither.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import load from "highs";

const [folder, seconds = "10"] = process.argv.slice(2);
const homes = readdirSync(folder).filter((f) => f.endsWith(".json")).map((f) => f.slice(0, -5)).sort();
if (homes.length === 0) throw new Error(`${folder} has no homes`);

let highs = await load();

// A solver that failed is not used again.
async function solve(text, limit) {
  const began = process.cpuUsage();
  let answer;
  try {
    answer = highs.solve(text, { time_limit: limit, mip_rel_gap: 1e-7, output_flag: false });
  } catch (e) {
    highs = await load();
    answer = { Status: `failed: ${e.message}` };
  }
  const used = process.cpuUsage(began);
  return { ...answer, ms: (used.user + used.system) / 1000 };
}

const median = (v) => v.slice().sort((a, b) => a - b)[v.length >> 1];
let faults = 0, agree = 0, unproven = 0, cheaper = 0, less = 0;
const ours = [], theirs = [];

for (const name of homes) {
  const flexd = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
  const fault = (what) => { faults++; console.log(`${name}: ${what}`); };
  let ms = 0, last;
  for (const [i, goal] of ["shortfall", "peak", "cost"].entries()) {
    last = await solve(readFileSync(join(folder, `${name}.${i}.lp`), "utf8"), Number(seconds));
    ms += last.ms;
    if (i < 2 && last.Status === "Optimal" && last.ObjectiveValue < flexd[goal] - 1e-5) {
      less++;
      console.log(`${name}: ${goal} ${flexd[goal]} kWh, by HiGHS ${last.ObjectiveValue}`);
    }
  }
  if (last.Status === "Infeasible") fault("HiGHS finds no plan of flexd's shortfall and peak energy");

  ours.push(flexd.ms);
  theirs.push(ms);
  if (last.Status !== "Optimal") { unproven++; continue; }

  const cost = last.ObjectiveValue + flexd.constant, small = 2e-6 * Math.max(1, flexd.gross);
  if (flexd.bound > cost + small) fault(`bound ${flexd.bound} above the optimum ${cost}`);
  if (flexd.cost > cost + small) cheaper++;
  if (flexd.optimal && Math.abs(flexd.cost - cost) > small) fault(`cost ${flexd.cost}, by HiGHS ${cost}`);
  if (flexd.optimal) agree++;
}

console.log(`${homes.length} homes: ${agree} proven by both and equal, ${unproven} unproven by HiGHS, ${cheaper} cheaper by HiGHS within flexd's stated gap, ${less} of less shortfall or peak energy by HiGHS, ${faults} faults`);
console.log(`median of processor time: flexd ${median(ours).toFixed(2)} ms, HiGHS ${median(theirs).toFixed(0)} ms, ratio ${(median(theirs) / median(ours)).toFixed(0)}`);
process.exit(faults > 0 ? 1 : 0);
