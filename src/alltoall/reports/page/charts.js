// Charts as SVG. Every mark has a title with its meaning.

const SVG = "http://www.w3.org/2000/svg";
const TALL = 18; // Pixels between labels of an axis, at least.

function mark(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const note = (text) => mark("title", {}, text);
const words = (x, y, text, anchor = "middle") => mark("text", { x, y, "text-anchor": anchor }, text);

// Round numbers from 0 to beyond the greatest value, about as many as there is room for.
function ticks(most, room) {
  const rough = (most || 1) / Math.max(1, Math.min(5, room));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power > rough * 0.999);
  const count = Math.max(1, Math.ceil((most || 1) / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(9)));
}

// Draw an empty chart with the axis of values, as large as its place; return its svg and edges.
function blank(id, most, across, up) {
  const place = by(id);
  const [width, height] = [place.clientWidth, place.clientHeight];
  const svg = mark("svg", { width, height });
  const [top, bottom] = [10, height - 38];
  const values = ticks(most, Math.floor((bottom - top) / TALL));
  const left = 26 + 7 * Math.max(...values.map((each) => String(each).length));
  const atY = (value) => bottom - (value / values[values.length - 1]) * (bottom - top);
  for (const value of values) {
    svg.append(mark("line", { class: "grid", x1: left, x2: width - 12, y1: atY(value), y2: atY(value) }));
    svg.append(words(left - 6, atY(value) + 4, String(value), "end"));
  }
  svg.append(words((left + width) / 2, height - 4, across));
  const side = words(-(top + bottom) / 2, 12, up);
  side.setAttribute("transform", "rotate(-90)");
  svg.append(side);
  place.replaceChildren(svg);
  return { svg, left, right: width - 12, top, bottom, atY };
}

// Columns of some values; `labels` has a place, in columns from the left, and a text each.
function columns(id, { values, paints, titles, labels, across, up, gap, act }) {
  const on = blank(id, Math.max(...values), across, up);
  const wide = (on.right - on.left) / values.length;
  values.forEach((value, at) => {
    const x = on.left + at * wide;
    const [inner, y] = [Math.max(0.5, wide * (1 - gap)), on.atY(value)];
    const bar = mark("g", { class: act ? "bar live" : "bar" }, note(titles[at]),
      mark("rect", { class: "reach", x, y: on.top, width: wide, height: on.bottom - on.top }),
      mark("rect", { x: x + (wide - inner) / 2, y, width: inner, height: on.bottom - y, fill: paints[at] }));
    if (act) bar.addEventListener("click", () => act(at));
    on.svg.append(bar);
  });
  for (const [at, text] of labels) on.svg.append(words(on.left + at * wide, on.bottom + 16, text));
}

// Rows of some values, each with its name above it, and a line at a limit.
function rows(id, { values, names, paints, titles, limit, across }) {
  const place = by(id);
  const [each, width, under] = [42, place.clientWidth, across ? 40 : 24];
  const height = each * values.length + under;
  const bottom = height - under + 4;
  const scale = ticks(Math.max(limit || 0, ...values), Math.floor(width / 80));
  const atX = (value) => (value / scale[scale.length - 1]) * (width - 20) + 4;
  const svg = mark("svg", { width, height });
  for (const value of scale) {
    svg.append(mark("line", { class: "grid", x1: atX(value), x2: atX(value), y1: 0, y2: bottom }));
    svg.append(words(atX(value), bottom + 15, String(value), value ? "middle" : "start"));
  }
  values.forEach((value, at) => {
    const [y, long] = [each * at + 18, atX(value) - 4];
    const said = few(value, 4);
    const inside = long > 12 + 8 * said.length;
    const number = words(4 + long + (inside ? -6 : 6), y + 14, said, inside ? "end" : "start");
    if (inside) number.setAttribute("class", "inside");
    svg.append(mark("g", { class: "bar" }, note(titles[at]), words(8, y - 5, names[at], "start"),
      mark("rect", { x: 4, y, width: long, height: 20, fill: paints[at] }), number));
  });
  if (limit) svg.append(mark("line", { class: "limit", x1: atX(limit), x2: atX(limit), y1: 0, y2: bottom }));
  if (across) svg.append(words(width / 2, height - 4, across));
  place.replaceChildren(svg);
  place.style.height = `${height}px`;
}

// Lines over sizes, each twice as far to the right as half of it; a gap where a value is missing.
function curves(id, { lines, across, up }) {
  const on = blank(id, Math.max(...lines.flatMap((line) => line.y.map(Number))), across, up);
  const sizes = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const [low, high] = [Math.log2(sizes[0]), Math.log2(sizes[sizes.length - 1])];
  const atX = (size) => on.left + 12 + ((Math.log2(size) - low) / (high - low || 1)) * (on.right - on.left - 30);
  let last = -Infinity;
  for (const size of sizes) {
    if (atX(size) - last < 44) continue;
    last = atX(size);
    on.svg.append(words(last, on.bottom + 16, inBytes(size)));
  }
  for (const { x, y, paint, dash, name } of lines) {
    const drawn = mark("g", { stroke: paint, fill: paint });
    const path = y.map((value, at) => value === null ? "" : `${at && y[at - 1] !== null ? "L" : "M"}${atX(x[at])},${on.atY(value)}`);
    drawn.append(mark("path", { d: path.join(""), fill: "none", "stroke-width": 2, "stroke-dasharray": dash }));
    y.forEach((value, at) => {
      if (value === null) return;
      drawn.append(mark("circle", { class: "point", cx: atX(x[at]), cy: on.atY(value), r: 4 },
        note(`${name}, ${inBytes(x[at])}: ${few(value, 4)} GB/s`)));
    });
    on.svg.append(drawn);
  }
}

function inBytes(size) {
  const at = Math.min(3, Math.floor(Math.log2(Math.max(size, 1)) / 10));
  return `${few(size / 1024 ** at, 4)} ${["B", "KiB", "MiB", "GiB"][at]}`;
}

function drawHistogram() {
  const here = view();
  by("loads").hidden = here.kind === "topology";
  if (here.kind === "topology") return;
  const bins = here.histogram.length;
  const shades = shadesOf(["--r0", "--r1", "--r2"]);
  columns("histogram", {
    values: here.histogram, gap: 0.08, across: "busy, % of the time", up: "links",
    paints: here.histogram.map((_, at) => shades[shadeOf((at + 0.5) / bins)]),
    titles: here.histogram.map((links, at) => `${counted(links, "link")}, busy ${few(100 * at / bins)} to ${few(100 * (at + 1) / bins)} % of the time`),
    labels: [0, 0.25, 0.5, 0.75, 1].map((share) => [share * bins, String(100 * share)]),
  });
  by("fullest").replaceChildren(table(["link", "busy"], here.fullest.map(([name, share]) => [name, percent(share)]), [1]));
}

function drawSteps() {
  const of = view().player;
  by("steps").hidden = !of || of.times.length < 2;
  if (!of || of.times.length < 2) return;
  const each = Math.ceil(of.times.length / 10);
  columns("steps", {
    values: of.times, gap: 0.25, up: "time", act: (at) => go(at + 1),
    across: of.stepsEach === 1 ? "step" : `${of.stepsEach} steps each`,
    paints: of.times.map((_, at) => `var(${at + 1 === chosen.frame ? "--path" : "--node"})`),
    titles: of.times.map((time, at) => `${stepName(of, at + 1)}: time ${few(time)}, ${counted(of.sends[at], "send")}`),
    labels: of.times.flatMap((_, at) => (at % each ? [] : [[at + 0.5, String(at + 1)]])),
  });
}

const ROLES = { baseline: "--base", own: "--node", bound: "--good" };

// The answer beside shortest-path routing and the proven bound.
function drawHeadline() {
  const of = view().headline;
  by("headline-bars").hidden = !of;
  if (!of) return;
  const bound = of.bars.find(([role]) => role === "bound");
  rows("headline-bars", {
    values: of.bars.map(([, , value]) => value), names: of.bars.map(([, name]) => name),
    paints: of.bars.map(([role]) => `var(${ROLES[role]})`), limit: bound && bound[2], across: of.unit,
    titles: of.bars.map(([, name, value]) => `${name}: ${few(value, 4)} ${of.unit.split(",")[0]}`),
  });
}

const answers = () => content.views.filter((each) => each.kind !== "topology");
const nameOfAnswer = (each) => `${each.method}, ${shortName(each.name)}`;

function drawComparison() {
  const known = answers().filter((each) => each.ratio);
  by("compare").hidden = answers().length < 2;
  by("bars").hidden = !known.length;
  if (answers().length < 2 || !known.length) return;
  rows("bars", {
    values: known.map((each) => each.ratio), names: known.map(nameOfAnswer),
    paints: known.map((each) => `var(${each === view() ? "--path" : "--node"})`),
    titles: known.map((each) => `${content.fabrics[each.fabric].name}: ${few(each.ratio, 5)} times the bound`), limit: 1,
  });
}

const DASHES = { "certified bound": "2 4", "the library's own": "7 4" };
const PAINTS = ["--node", "--r1", "--path", "--good", "--r2", "--relay"];

function drawRuns() {
  by("runs").hidden = !content.runs.length;
  if (!content.runs.length) return;
  const lines = content.runs.flatMap((run, at) => run.curves.map((curve) => ({
    name: `${shortName(run.name)}: ${curve.name}`, x: run.bytes, y: curve.values.map((each) => each && each / 1e9),
    paint: `var(${PAINTS[at % PAINTS.length]})`, dash: DASHES[curve.name] || "none",
  })));
  curves("curves", { lines, across: "bytes of a shard", up: "GB/s per node" });
  by("keys").replaceChildren(...lines.map(({ name, paint, dash }) => {
    const sample = mark("svg", { width: 28, height: 8 });
    sample.append(mark("path", { d: "M0,4L28,4", stroke: paint, "stroke-width": 3, "stroke-dasharray": dash }));
    const item = make("li", {});
    item.append(sample, name);
    return item;
  }));
}

function drawCharts() {
  if (content.views.length) for (const each of [drawHeadline, drawHistogram, drawSteps, drawComparison]) each();
  drawRuns();
}

function startCharts() {
  parts.push((before) => {
    if (before.view !== chosen.view) drawCharts();
    else if (before.frame !== chosen.frame) drawSteps();
  });
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => { drawSoon(); drawCharts(); });
  let width = 0;
  new ResizeObserver(() => {
    if (width !== document.body.clientWidth) drawCharts();
    width = document.body.clientWidth;
  }).observe(document.body);
}
