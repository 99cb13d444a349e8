// The network as a matrix, in which a hundred thousand links are no tangle.

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
  drawFrames(pen, of, grid, proven("lines"), palette["--proof"]);
  const chosenLines = chosen.line === null ? [] : [chosen.line];
  drawFrames(pen, of, grid, [...drawing.paths.flatMap((path) => path.lines), ...chosenLines], palette["--path"]);
  drawAxes(pen, of, grid);
}

// Frames around the cells of the links that prove the bound, and of the chosen paths.
function drawFrames(pen, of, grid, lines, paint) {
  pen.strokeStyle = paint;
  pen.lineWidth = 2;
  const side = Math.max(7, grid.scale);
  const at = (node) => (grid.bin(node) + 0.5) * grid.scale - side / 2;
  for (const line of lines) {
    pen.strokeRect(grid.left + at(numbers(of, "head")[line]), grid.top + at(numbers(of, "tail")[line]), side, side);
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
