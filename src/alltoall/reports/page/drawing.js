// The network, with the load of its links as colour and width: as nodes and lines, or as a matrix.

const LINES_AS_NETWORK = 1500; // More lines than this are a tangle; a matrix then comes first.
const SHADES = 24;

const drawing = { canvas: by("drawing"), matrix: false, zoom: 1, moveX: 0, moveY: 0, paths: [], names: [], marked: true };

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

// The lines and nodes that prove the bound, to be marked; none if that is switched off.
function proven(key) {
  const { proof } = view();
  return drawing.marked && proof && proof[key] ? numbers(proof, key) : [];
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

// Colours that every node asks for, read once for a drawing.
const palette = {};

function draw() {
  for (const name of ["--path", "--node", "--relay", "--label", "--ink", "--proof"]) palette[name] = colour(name);
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
