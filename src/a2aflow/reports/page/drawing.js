// The network, with the load of its links as colour and width: as nodes and lines, or as a matrix.

const LINES_AS_NETWORK = 1500; // More lines than this are a tangle; a matrix then comes first.
const SHADES = 24;

const drawing = { canvas: by("drawing"), matrix: false, zoom: 1, moveX: 0, moveY: 0, ways: [] };

// How full each line is: of the whole answer, or in the frame that is chosen; null without one.
function loads() {
  const here = view();
  if (here.kind === "topology") return null;
  if (!chosen.frame) return numbers(here, "share");
  const player = here.player;
  const found = new Float32Array(numbers(fabric(), "tail").length);
  const lines = numbers(player, "line");
  const shares = numbers(player, "share");
  for (let at = player.start[chosen.frame - 1]; at < player.start[chosen.frame]; at++) {
    found[lines[at]] = shares[at];
  }
  return found;
}

function shadesOf(names) {
  const read = (name) => colour(name).match(/[0-9a-f]{2}/gi).map((each) => parseInt(each, 16));
  const stops = names.map(read);
  return Array.from({ length: SHADES }, (_, at) => {
    const place = (at / (SHADES - 1)) * (stops.length - 1);
    const left = Math.min(Math.floor(place), stops.length - 2);
    const mixed = stops[left].map((each, index) =>
      Math.round(each + (place - left) * (stops[left + 1][index] - each)));
    return `rgb(${mixed.join(",")})`;
  });
}

const shadeOf = (share) => Math.max(0, Math.min(SHADES - 1, Math.round(share * (SHADES - 1))));

// The canvas in pixels of the screen, and where the square of the drawing lies in it.
function sheet() {
  const { canvas } = drawing;
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

// Return where every node is on the canvas. The drawing fills it, but no side is stretched far.
function places(width, height) {
  const of = fabric();
  const [x, y] = [numbers(of, "x"), numbers(of, "y")];
  const [across, down] = [extent(x), extent(y)];
  const margin = of.aroundX || (of.circles && of.circles.length) ? 44 : 28;
  const fit = [(width - 2 * margin) / across, (height - 2 * margin) / down];
  const [wide, high] = fit.map((each) => Math.min(each, 1.5 * Math.min(...fit)) * drawing.zoom);
  return {
    wide, high,
    atX: (each) => width / 2 + drawing.moveX + (each - across / 2) * wide,
    atY: (each) => height / 2 + drawing.moveY + (each - down / 2) * high,
    x: Array.from(x, (each) => width / 2 + drawing.moveX + (each - across / 2) * wide),
    y: Array.from(y, (each) => height / 2 + drawing.moveY + (each - down / 2) * high),
  };
}

// How far values go from 0, where the smallest is.
function extent(values) {
  let most = 0.05;
  for (const each of values) most = Math.max(most, each);
  return most;
}

function radiusOf(width, height) {
  const room = Math.sqrt((width * height) / fabric().names.length);
  return Math.max(2, Math.min(13, room / 7)) * Math.min(2, Math.sqrt(drawing.zoom));
}

function drawNetwork({ pen, width, height }) {
  const of = fabric();
  const place = places(width, height);
  const radius = radiusOf(width, height);
  const full = loads();
  drawCircles(pen, of, place);
  drawLines(pen, of, place, radius, full);
  drawWays(pen, of, place, radius);
  drawNodes(pen, of, place, radius, full);
}

// What belongs together, such as a host with its GPUs, is within a circle.
function drawCircles(pen, of, place) {
  pen.strokeStyle = pen.fillStyle = colour("--soft");
  pen.font = "12px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "bottom";
  pen.lineWidth = 1;
  for (const [name, x, y, radius] of of.circles || []) {
    pen.beginPath();
    pen.ellipse(place.atX(x), place.atY(y), radius * place.wide, radius * place.high, 0, 0, 7);
    pen.globalAlpha = 0.08;
    pen.fill();
    pen.globalAlpha = 0.6;
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillText(name, place.atX(x), place.atY(y - radius) - 2);
  }
}

// A line lies to the right of the straight one, so that both directions show. One that goes around
// a grid is two: out of its tail, and into its head. One within a place is none.
function segments(of, place, line, radius) {
  const [a, b] = [numbers(of, "tail")[line], numbers(of, "head")[line]];
  const aroundX = of.aroundX ? numbers(of, "aroundX")[line] * place.wide : 0;
  const aroundY = of.aroundX ? numbers(of, "aroundY")[line] * place.high : 0;
  const from = [place.x[a], place.y[a]];
  const to = [place.x[b], place.y[b]];
  if (!aroundX && !aroundY) return beside(of, from, to, radius, radius);
  const [dx, dy] = [aroundX * 0.42, aroundY * 0.42];
  return [
    ...beside(of, from, [from[0] + dx, from[1] + dy], radius, 0),
    ...beside(of, [to[0] - dx, to[1] - dy], to, 0, radius),
  ];
}

function beside(of, [x1, y1], [x2, y2], before, after) {
  const long = Math.hypot(x2 - x1, y2 - y1);
  if (long < 1e-6) return [];
  const [ux, uy] = [(x2 - x1) / long, (y2 - y1) / long];
  const aside = of.bothWays ? 2.4 : 0;
  return [[x1 - uy * aside + ux * before, y1 + ux * aside + uy * before,
    x2 - uy * aside - ux * after, y2 + ux * aside - uy * after]];
}

function drawLines(pen, of, place, radius, full) {
  const shades = shadesOf(["--r0", "--r1", "--r2"]);
  const groups = Array.from({ length: SHADES + 1 }, () => []);
  const total = numbers(of, "tail").length;
  for (let line = 0; line < total; line++) {
    groups[full && full[line] > 0 ? 1 + shadeOf(full[line]) : 0].push(line);
  }
  const thick = Math.max(0.5, Math.min(1.5, 40 / Math.sqrt(total + 1))) * Math.sqrt(drawing.zoom);
  const faint = drawing.ways.length > 0;
  const heads = (!of.bothWays || chosen.frame > 0) && total < 4000;
  groups.forEach((lines, at) => {
    pen.globalAlpha = faint ? 0.25 : at === 0 && chosen.frame ? 0.45 : 1;
    pen.strokeStyle = at === 0 ? colour("--idle") : shades[at - 1];
    pen.lineWidth = at === 0 ? thick * 0.6 : thick * (0.6 + at / SHADES);
    pen.beginPath();
    for (const line of lines) {
      for (const part of segments(of, place, line, radius)) trace(pen, part, heads && 4 + thick);
    }
    pen.stroke();
  });
  pen.globalAlpha = 1;
  if (chosen.line !== null) strike(pen, segments(of, place, chosen.line, radius), colour("--ink"), thick * 2);
}

function trace(pen, [x1, y1, x2, y2], head) {
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  const long = Math.hypot(x2 - x1, y2 - y1);
  if (!head || long < 2 * head) return;
  const [ux, uy] = [((x2 - x1) / long) * head, ((y2 - y1) / long) * head];
  pen.moveTo(x2 - ux - uy * 0.5, y2 - uy + ux * 0.5);
  pen.lineTo(x2, y2);
  pen.lineTo(x2 - ux + uy * 0.5, y2 - uy - ux * 0.5);
}

function strike(pen, all, paint, thick) {
  pen.strokeStyle = paint;
  pen.lineWidth = thick;
  pen.beginPath();
  for (const part of all) trace(pen, part, 5 + thick);
  pen.stroke();
}

// The ways of the chosen pair, the heavier the thicker.
function drawWays(pen, of, place, radius) {
  for (const { lines, weight } of drawing.ways) {
    for (const line of lines) {
      strike(pen, segments(of, place, line, radius), colour("--way"), 1.5 + 2.5 * weight);
    }
  }
}

// A node that is drawn in the place of another, as the NIC half of a host is, shows as its ring.
function drawNodes(pen, of, place, radius, full) {
  const flags = numbers(of, "isTerminal");
  const host = of.host && numbers(of, "host");
  const rings = ringsOf(of, host, full);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const room = Math.sqrt((drawing.canvas.clientWidth * drawing.canvas.clientHeight) / of.names.length);
  of.within = of.within || namesWithin(of);
  of.within.forEach((name, node) => {
    if (host && host[node] !== node) return;
    const [x, y] = [place.x[node], place.y[node]];
    pen.fillStyle = colourOfNode(node, flags[node]);
    pen.beginPath();
    if (flags[node]) pen.arc(x, y, radius, 0, 7);
    else pen.rect(x - radius * 0.75, y - radius * 0.75, radius * 1.5, radius * 1.5);
    pen.fill();
    if (rings.has(node)) {
      pen.strokeStyle = rings.get(node);
      pen.lineWidth = Math.max(1.5, radius / 4);
      pen.stroke();
    }
    drawName(pen, name, x, y, radius, room * drawing.zoom, flags[node]);
  });
}

// How full the links within a place are: the fullest gives the ring its colour.
function ringsOf(of, host, full) {
  const rings = new Map();
  if (!host || !full) return rings;
  const [tail, head] = [numbers(of, "tail"), numbers(of, "head")];
  for (let line = 0; line < tail.length; line++) {
    const here = host[tail[line]];
    if (here === host[head[line]]) rings.set(here, Math.max(rings.get(here) ?? 0, full[line]));
  }
  const shades = shadesOf(["--r0", "--r1", "--r2"]);
  for (const [node, share] of rings) rings.set(node, share > 0 ? shades[shadeOf(share)] : colour("--idle"));
  return rings;
}

function colourOfNode(node, terminal) {
  const all = terminals(fabric());
  if (node === chosen.node || node === all[chosen.source] || node === all[chosen.destination]) {
    return palette["--way"];
  }
  return palette[terminal ? "--node" : "--relay"];
}

// Within a circle that has a name, the name of a node is what it has besides: gpu0 of host3:gpu0.
function namesWithin(of) {
  const prefixes = (of.circles || []).map(([name]) => `${name}:`);
  const within = (name) => prefixes.find((prefix) => name.startsWith(prefix)) || "";
  return of.names.map((name) => name.slice(within(name).length));
}

function drawName(pen, name, x, y, radius, room, terminal) {
  const short = [...name].length <= 3;
  const size = short ? Math.min(13, radius) : 10;
  if (size < 7.5) return;
  pen.font = `${size}px system-ui, sans-serif`;
  if (short) {
    pen.fillStyle = palette[terminal ? "--label" : "--ink"];
    pen.fillText(name, x, y + 0.5);
  } else if (pen.measureText(name).width < room * 0.8) {
    pen.fillStyle = palette["--ink"];
    pen.fillText(name, x, y - radius - 7);
  }
}

// Rows send to columns. Nodes of which there are more than pixels share a cell.
function cells(width, height) {
  const size = Math.min(width, height) - 34;
  const nodes = fabric().names.length;
  const bins = Math.max(1, Math.min(nodes, Math.floor(size / 2)));
  const scale = (size / bins) * drawing.zoom;
  const left = (width - size * drawing.zoom) / 2 + 8 + drawing.moveX;
  const top = (height - size * drawing.zoom) / 2 + 8 + drawing.moveY;
  return { bins, scale, left, top, size: size * drawing.zoom, bin: (node) => Math.floor((node * bins) / nodes) };
}

function drawMatrix({ pen, width, height }) {
  const of = fabric();
  const grid = cells(width, height);
  const [tail, head, full] = [numbers(of, "tail"), numbers(of, "head"), loads()];
  const most = new Map();
  for (let line = 0; line < tail.length; line++) {
    const key = grid.bin(tail[line]) * grid.bins + grid.bin(head[line]);
    most.set(key, Math.max(most.get(key) ?? -1, full ? full[line] : 0));
  }
  const shades = shadesOf(["--r0", "--r1", "--r2"]);
  pen.strokeStyle = colour("--line");
  pen.lineWidth = 1;
  pen.strokeRect(grid.left - 0.5, grid.top - 0.5, grid.size + 1, grid.size + 1);
  const idle = colour("--idle");
  const side = Math.max(1.6, grid.scale - (grid.scale > 8 ? 1 : 0));
  for (const [key, share] of most) {
    pen.fillStyle = share > 0 ? shades[shadeOf(share)] : idle;
    pen.fillRect(grid.left + (key % grid.bins) * grid.scale, grid.top + Math.floor(key / grid.bins) * grid.scale, side, side);
  }
  drawCellsOfWays(pen, of, grid);
  drawAxes(pen, of, grid);
}

function drawCellsOfWays(pen, of, grid) {
  pen.strokeStyle = colour("--way");
  pen.lineWidth = 2;
  const marked = [...drawing.ways.flatMap((way) => way.lines), ...(chosen.line === null ? [] : [chosen.line])];
  for (const line of marked) {
    const across = grid.bin(numbers(of, "head")[line]) * grid.scale;
    const down = grid.bin(numbers(of, "tail")[line]) * grid.scale;
    const side = Math.max(7, grid.scale);
    pen.strokeRect(grid.left + across + grid.scale / 2 - side / 2, grid.top + down + grid.scale / 2 - side / 2, side, side);
  }
}

function drawAxes(pen, of, grid) {
  pen.fillStyle = colour("--soft");
  pen.font = "12px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.textBaseline = "bottom";
  const last = of.names[of.names.length - 1];
  pen.fillText(`to ${of.names[0]} … ${last} →`, grid.left, grid.top - 4);
  pen.save();
  pen.translate(grid.left - 4, grid.top);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "right";
  pen.fillText(`← from ${of.names[0]} … ${last}`, 0, 0);
  pen.restore();
}

let palette = {};

function draw() {
  for (const name of ["--way", "--node", "--relay", "--label", "--ink"]) palette[name] = colour(name);
  const on = sheet();
  if (drawing.matrix) drawMatrix(on);
  else drawNetwork(on);
}

let waiting = false;
function drawSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

// Return the node or the line at a point of the canvas.
function foundAt(x, y) {
  const { clientWidth: width, clientHeight: height } = drawing.canvas;
  return drawing.matrix ? foundInMatrix(x, y, width, height) : foundInNetwork(x, y, width, height);
}

function foundInNetwork(x, y, width, height) {
  const of = fabric();
  const place = places(width, height);
  const radius = radiusOf(width, height);
  const near = { node: null, line: null, far: radius + 5 };
  of.names.forEach((_, node) => {
    const far = Math.hypot(place.x[node] - x, place.y[node] - y);
    if (far < near.far) Object.assign(near, { node, far });
  });
  if (near.node !== null) return { node: near.node, line: null };
  near.far = 7;
  for (let line = 0; line < numbers(of, "tail").length; line++) {
    const far = Math.min(...segments(of, place, line, radius).map((part) => distanceTo(x, y, part)));
    if (far < near.far) Object.assign(near, { line, far });
  }
  return { node: null, line: near.line };
}

function distanceTo(x, y, [x1, y1, x2, y2]) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const at = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x1 + at * dx - x, y1 + at * dy - y);
}

function foundInMatrix(x, y, width, height) {
  const of = fabric();
  const grid = cells(width, height);
  const [across, down] = [(x - grid.left) / grid.scale, (y - grid.top) / grid.scale];
  const full = loads();
  let best = null;
  for (let line = 0; line < numbers(of, "tail").length; line++) {
    const far = Math.max(Math.abs(grid.bin(of.head[line]) + 0.5 - across), Math.abs(grid.bin(of.tail[line]) + 0.5 - down));
    if (far * grid.scale > Math.max(6, grid.scale / 2)) continue;
    if (best === null || far < best.far || (far === best.far && full && full[line] > full[best.line])) best = { line, far };
  }
  return { node: null, line: best && best.line };
}

function tell(found) {
  const of = fabric();
  if (found.line !== null) {
    const full = loads();
    const load = full ? `, ${percent(full[found.line])} of the time busy${chosen.frame ? " in this step" : ""}` : "";
    return `Link ${lineName(of, found.line)}: capacity ${few(numbers(of, "capacity")[found.line])}${load}`;
  }
  if (found.node !== null) {
    const kind = numbers(of, "isTerminal")[found.node] ? "terminal" : "forwards only";
    const out = numbers(of, "tail").filter((each) => each === found.node).length;
    return `Node ${of.names[found.node]}: ${kind}, ${counted(out, "link")} out`;
  }
  return "";
}

function zoomBy(factor) {
  drawing.zoom = Math.max(1, Math.min(40, drawing.zoom * factor));
  const rest = drawing.zoom === 1 ? 0 : factor;
  drawing.moveX *= rest;
  drawing.moveY *= rest;
  drawing.canvas.style.touchAction = drawing.zoom > 1 ? "none" : "pan-y";
  drawSoon();
}

function moveBy(dx, dy) {
  if (drawing.zoom === 1) return;
  drawing.moveX += dx;
  drawing.moveY += dy;
  drawSoon();
}

function setMatrix(matrix) {
  Object.assign(drawing, { matrix, zoom: 1, moveX: 0, moveY: 0 });
  by("as-network").setAttribute("aria-pressed", String(!matrix));
  by("as-matrix").setAttribute("aria-pressed", String(matrix));
  drawSoon();
}

function told(found) {
  const rest = fabric().whole ? "" : " A node here stands for several, a line for its fullest link.";
  by("told").textContent = tell(found) || `Point at a node or a link.${rest}`;
}

// Two nodes that are chosen one after the other become the pair whose ways are shown.
function pick(found) {
  const change = { ...found };
  const at = found.node === null ? -1 : terminals(fabric()).indexOf(found.node);
  if (at >= 0 && view().ways) {
    const second = chosen.source !== null && chosen.destination === null && at !== chosen.source;
    Object.assign(change, second ? { destination: at } : { source: at, destination: null });
  }
  choose(change);
}

function startDrawing() {
  const { canvas } = drawing;
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, far: 0 }; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) {
      moveBy(event.clientX - drag.x, event.clientY - drag.y);
      drag.far += Math.hypot(event.clientX - drag.x, event.clientY - drag.y);
      Object.assign(drag, { x: event.clientX, y: event.clientY });
    } else {
      told(foundAt(event.offsetX, event.offsetY));
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && drag.far < 6) pick(foundAt(event.offsetX, event.offsetY));
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => told({ node: chosen.node, line: chosen.line }));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && drawing.zoom === 1 && event.deltaY > 0) return;
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const act = { "+": () => zoomBy(1.4), "-": () => zoomBy(1 / 1.4), 0: () => zoomBy(1e-9) }[event.key];
    if (act) { act(); event.preventDefault(); }
  });
  by("zoom-in").addEventListener("click", () => zoomBy(1.4));
  by("zoom-out").addEventListener("click", () => zoomBy(1 / 1.4));
  by("zoom-all").addEventListener("click", () => zoomBy(1e-9));
  by("as-network").addEventListener("click", () => setMatrix(false));
  by("as-matrix").addEventListener("click", () => setMatrix(true));
  new ResizeObserver(drawSoon).observe(canvas);
}

parts.push((before) => {
  if (before.view !== chosen.view) {
    setMatrix(numbers(fabric(), "tail").length > LINES_AS_NETWORK);
    drawing.canvas.setAttribute("aria-label", `${fabric().name}: ${fabric().nodes} nodes, ${fabric().links} links`);
  }
  told({ node: chosen.node, line: chosen.line });
  drawSoon();
});
