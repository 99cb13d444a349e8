// The network as nodes and lines, with the load of its links as colour and width.

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
  drawProof(pen, of, place, radius);
  drawLines(pen, of, place, radius, full);
  drawPaths(pen, of, place, radius);
  drawNodes(pen, of, place, radius, full);
  drawNames(pen, of, place, radius, { width, height });
}

// Circles around groups, such as a host with its GPUs.
function drawCircles(pen, of, place) {
  pen.strokeStyle = pen.fillStyle = colour("--soft");
  pen.lineWidth = 1;
  for (const [, x, y, radius] of of.circles || []) {
    pen.beginPath();
    pen.ellipse(place.atX(x), place.atY(y), radius * place.wide, radius * place.high, 0, 0, 7);
    pen.globalAlpha = 0.08;
    pen.fill();
    pen.globalAlpha = 0.6;
    pen.stroke();
    pen.globalAlpha = 1;
  }
}

// A halo around the cut, or the links, that prove the bound, and around the nodes within the cut.
function drawProof(pen, of, place, radius) {
  pen.strokeStyle = pen.fillStyle = palette["--proof"];
  pen.globalAlpha = drawing.paths.length ? 0.2 : 0.55;
  pen.lineWidth = proven("lines").length > 64 ? 5 : 9;
  pen.beginPath();
  for (const line of proven("lines")) {
    for (const [x1, y1, x2, y2] of segments(of, place, line, radius)) {
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
    }
  }
  pen.stroke();
  pen.beginPath();
  for (const node of proven("nodes")) {
    pen.moveTo(place.x[node], place.y[node]);
    pen.arc(place.x[node], place.y[node], radius + 5, 0, 7);
  }
  pen.fill();
  pen.globalAlpha = 1;
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
  const thick = Math.max(0.5, Math.min(1.5, 16 / Math.sqrt(total + 1))) * Math.sqrt(drawing.zoom);
  const faint = drawing.paths.length > 0;
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

// The paths of the chosen pair, the heavier the thicker.
function drawPaths(pen, of, place, radius) {
  for (const { lines, weight } of drawing.paths) {
    for (const line of lines) {
      strike(pen, segments(of, place, line, radius), colour("--path"), 1.5 + 2.5 * weight);
    }
  }
}

// A node that is drawn in the place of another, as the NIC half of a host is, shows as its ring.
function drawNodes(pen, of, place, radius, full) {
  const flags = numbers(of, "isTerminal");
  const host = of.host && numbers(of, "host");
  const rings = ringsOf(of, host, full);
  of.names.forEach((_, node) => {
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
    return palette["--path"];
  }
  return palette[terminal ? "--node" : "--relay"];
}

// Within a named circle the prefix of a node is left out: gpu0 for host3:gpu0.
function namesWithin(of) {
  const prefixes = (of.circles || []).map(([name]) => `${name}:`);
  const within = (name) => prefixes.find((prefix) => name.startsWith(prefix)) || "";
  return of.names.map((name) => name.slice(within(name).length));
}

// Short names stand in their nodes. Others stand beside, away from the lines of the node, where no
// node and no other name is; a ground behind them keeps lines from striking them through.
function drawNames(pen, of, place, radius, sheet) {
  const [flags, host] = [numbers(of, "isTerminal"), of.host && numbers(of, "host")];
  of.within = of.within || namesWithin(of);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  drawing.names = [];
  for (const [name, x, y, round] of of.circles || []) {
    const outward = place.atY(y) < sheet.height / 2 ? -1 : 1;
    const spots = [outward, -outward].map((way) => [place.atX(x), place.atY(y) + way * (round * place.high + 9)]);
    putName(pen, name, 12, spots, { place, radius, sheet, host });
  }
  const aside = awayFromLines(of, place);
  of.within.forEach((name, node) => {
    if (host && host[node] !== node) return;
    const [x, y] = [place.x[node], place.y[node]];
    if ([...name].length <= 3) {
      pen.font = `${Math.min(13, radius)}px system-ui, sans-serif`;
      pen.fillStyle = palette[flags[node] ? "--label" : "--ink"];
      if (radius >= 7.5) pen.fillText(name, x, y + 0.5);
      return;
    }
    pen.font = "10px system-ui, sans-serif";
    const half = pen.measureText(name).width / 2 + radius + 4;
    const spots = [[0, -radius - 8], [0, radius + 8], [half, 0], [-half, 0]];
    const [dx, dy] = aside[node];
    spots.sort((one, other) => other[0] * dx / half + other[1] * dy / radius - one[0] * dx / half - one[1] * dy / radius);
    putName(pen, name, 10, spots.map((spot) => [x + spot[0], y + spot[1]]), { place, radius, sheet, host });
  });
}

// Put a name at the first spot that is free, or nowhere.
function putName(pen, name, size, spots, { place, radius, sheet, host }) {
  pen.font = `${size}px system-ui, sans-serif`;
  const [wide, high] = [pen.measureText(name).width / 2 + 2, size / 2 + 1];
  const isFree = ([x, y]) => x > wide && y > high && x < sheet.width - wide && y < sheet.height - high
    && drawing.names.every((each) => Math.abs(each.x - x) >= each.wide + wide || Math.abs(each.y - y) >= each.high + high)
    && place.x.every((px, node) => (host && host[node] !== node)
      || Math.hypot(Math.max(0, Math.abs(px - x) - wide), Math.max(0, Math.abs(place.y[node] - y) - high)) >= radius);
  const spot = spots.find(isFree);
  if (!spot) return;
  const [x, y] = spot;
  drawing.names.push({ name, x, y, wide, high });
  pen.fillStyle = colour("--card");
  pen.fillRect(x - wide, y - high, 2 * wide, 2 * high);
  pen.fillStyle = palette["--ink"];
  pen.fillText(name, x, y + 0.5);
}

// Where each node has no lines: opposite to the sum of their directions.
function awayFromLines(of, place) {
  const found = of.names.map(() => [0, -0.01]);
  const [tail, head] = [numbers(of, "tail"), numbers(of, "head")];
  for (let line = 0; line < tail.length; line++) {
    const [a, b] = [tail[line], head[line]];
    const [dx, dy] = [place.x[b] - place.x[a], place.y[b] - place.y[a]];
    const long = Math.hypot(dx, dy) || 1;
    found[a][0] -= dx / long;
    found[a][1] -= dy / long;
    found[b][0] += dx / long;
    found[b][1] += dy / long;
  }
  return found;
}
