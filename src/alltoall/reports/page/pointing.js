// Pointing, choosing and zooming in the drawing.

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

function showInfo(found) {
  const rest = fabric().whole ? "" : " A node here stands for several, a line for its fullest link.";
  by("info").textContent = tell(found) || `Point at a node or a link.${rest}`;
}

// The legend of the marked proof, a switch.
function showProofKey() {
  const { proof } = view();
  const [key, marked] = [by("mark-proof"), Boolean(proof && proof.lines)];
  key.hidden = !proof;
  key.disabled = !marked;
  key.setAttribute("aria-pressed", String(marked && drawing.marked));
  key.querySelector(".swatch").hidden = !marked;
  by("proof-key").textContent = proof ? proof.text : "";
}

// Two nodes that are chosen one after the other become the pair whose paths are shown.
function pick(found) {
  const change = { ...found };
  const at = found.node === null ? -1 : terminals(fabric()).indexOf(found.node);
  if (at >= 0 && view().paths) {
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
      showInfo(foundAt(event.offsetX, event.offsetY));
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && drag.far < 6) pick(foundAt(event.offsetX, event.offsetY));
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => showInfo({ node: chosen.node, line: chosen.line }));
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
  by("mark-proof").addEventListener("click", () => { drawing.marked = !drawing.marked; showProofKey(); drawSoon(); });
  by("as-network").addEventListener("click", () => setMatrix(false));
  by("as-matrix").addEventListener("click", () => setMatrix(true));
  new ResizeObserver(drawSoon).observe(canvas);
}

parts.push((before) => {
  if (before.view !== chosen.view) {
    setMatrix(numbers(fabric(), "tail").length > LINES_AS_NETWORK);
    showProofKey();
    drawing.canvas.setAttribute("aria-label", `${fabric().name}: ${fabric().nodes} nodes, ${fabric().links} links`);
  }
  showInfo({ node: chosen.node, line: chosen.line });
  drawSoon();
});
