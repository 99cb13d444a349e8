// The paths of a chosen pair: routes with weights and layers, paths of a flow, or chunks with the
// steps of each hop.

// Return where each route's links begin, which the page has as lengths.
function startsOf(of) {
  if (!of.starts) {
    const hops = numbers(of, "hops");
    of.starts = new Uint32Array(hops.length + 1);
    for (let at = 0; at < hops.length; at++) of.starts[at + 1] = of.starts[at] + hops[at];
  }
  return of.starts;
}

function ofPair(of) {
  const [source, destination] = [numbers(of, "source"), numbers(of, "destination")];
  const found = [];
  for (let at = 0; at < source.length; at++) {
    if (source[at] === chosen.source && destination[at] === chosen.destination) found.push(at);
  }
  return found;
}

// Return the layer of a route, or that of each hop where it changes on the path.
function layerInWords(of, at, starts) {
  if (of.layer) return String(numbers(of, "layer")[at]);
  if (!of.hopLayer) return "none";
  return Array.from(numbers(of, "hopLayer").subarray(starts[at], starts[at + 1])).join(", ");
}

function routesOfPair(of) {
  const [link, weight, starts] = [numbers(of, "link"), numbers(of, "weight"), startsOf(of)];
  return ofPair(of).map((at) => ({
    weight: weight[at],
    lines: Array.from(link.subarray(starts[at], starts[at + 1])),
    layer: layerInWords(of, at, starts),
  }));
}

function chunksOfPair(of) {
  const [link, chunk, step] = ["link", "chunk", "step"].map((key) => numbers(of, key));
  const paths = new Map();
  for (const at of ofPair(of)) {
    if (!paths.has(chunk[at])) paths.set(chunk[at], { chunk: chunk[at], lines: [], steps: [] });
    paths.get(chunk[at]).lines.push(link[at]);
    paths.get(chunk[at]).steps.push(step[at]);
  }
  const found = [...paths.values()].sort((a, b) => a.chunk - b.chunk);
  return found.map((each) => ({ ...inOrder(each), weight: 1 / found.length }));
}

// A chunk passes a switch within a step: put its hops one after the other from where it begins.
function inOrder(path) {
  const [tail, head] = [numbers(fabric(), "tail"), numbers(fabric(), "head")];
  const rest = path.lines.map((line, at) => ({ line, step: path.steps[at] }));
  const sorted = [];
  let here = terminals(fabric())[chosen.source];
  while (rest.length) {
    const found = rest.findIndex((each) => tail[each.line] === here);
    const [next] = rest.splice(Math.max(0, found), 1);
    sorted.push(next);
    here = head[next.line];
  }
  return { ...path, lines: sorted.map((each) => each.line), steps: sorted.map((each) => each.step) };
}

function pathInWords(path) {
  const of = fabric();
  const first = of.names[numbers(of, "tail")[path.lines[0]]];
  const rest = path.lines.map((line, at) => {
    const step = path.steps ? ` -${path.steps[at]}→ ` : " → ";
    return step + of.names[numbers(of, "head")[line]];
  });
  return first + rest.join("");
}

function weightInWords(weight, whole) {
  const part = weight * (whole || 0);
  if (whole > 1 && whole <= 1000 && Math.abs(part - Math.round(part)) < 1e-4) {
    const common = (a, b) => (b ? common(b, a % b) : a);
    const by = common(Math.round(part), whole);
    if (whole > by) return `${Math.round(part) / by}/${whole / by}`;
  }
  return few(weight);
}

function tableOfPaths(of, paths) {
  if (of.kind === "sends") {
    return table(["chunk", "path, with the step of each hop", "hops"], paths.map((path) => [path.chunk, pathInWords(path), path.lines.length]), [2]);
  }
  if (of.kind === "paths") {
    return table(["weight", "path", "hops"], paths.map((path) => [few(path.weight), pathInWords(path), path.lines.length]), [2]);
  }
  return table(["weight", "layer", "route", "hops"], paths.map((path) => [
    weightInWords(path.weight, of.denominator), path.layer, pathInWords(path), path.lines.length,
  ]), [3]);
}

function options(select, positions, none) {
  const nodes = terminals(fabric());
  const made = [make("option", { value: "" }, none)];
  for (const position of positions) made.push(make("option", { value: position }, fabric().names[nodes[position]]));
  select.replaceChildren(...made);
}

const PAIR_TITLES = { routes: "Routes of a pair", paths: "Paths of a pair", sends: "Chunks of a pair" };

function fillChoosers(of) {
  options(by("source"), of.sources, "choose");
  options(by("destination"), terminals(fabric()).map((_, position) => position), "choose");
  by("pairs-title").textContent = PAIR_TITLES[of.kind];
}

function hint(of) {
  const some = of.all ? "" : `This page has room for the paths of ${counted(of.sources.length, "source")}; `
    + "alltoall report --source NAME chooses others. ";
  const kind = of.kind === "paths" ? "A flow can be taken apart in many paths; these are the widest paths. " : "";
  return `${kind}${some}Choose two terminals here, or one after the other in the drawing.`;
}

const chosenNumber = (event) => (event.target.value === "" ? null : Number(event.target.value));

function startPairs() {
  by("source").addEventListener("change", (event) => choose({ source: chosenNumber(event), node: null, line: null }));
  by("destination").addEventListener("change", (event) => choose({ destination: chosenNumber(event), node: null, line: null }));
  by("no-pair").addEventListener("click", () => choose({ source: null, destination: null, node: null, line: null }));
}

// Before the drawing, which shows the paths that are found here.
parts.unshift((before) => {
  const of = view().paths;
  by("pairs").hidden = !of;
  drawing.paths = [];
  by("paths").replaceChildren();
  if (!of) return;
  if (before.view !== chosen.view) fillChoosers(of);
  by("source").value = chosen.source ?? "";
  by("destination").value = chosen.destination ?? "";
  by("pairs-hint").textContent = hint(of);
  if (chosen.source === null || chosen.destination === null) return;
  drawing.paths = of.kind === "sends" ? chunksOfPair(of) : routesOfPair(of);
  if (drawing.paths.length) by("paths").append(tableOfPaths(of, drawing.paths));
  else by("paths").append(make("p", { class: "hint" }, "This page has no path of this pair."));
});
