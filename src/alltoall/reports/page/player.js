// A schedule, step by step: which chunk crosses which link when.

const LISTED = 200; // Sends of a step that are listed; the rest is counted.
const PACE = 900; // Milliseconds of a step.

const player = { timer: null };

const frames = () => (view().player ? view().player.times.length : 0);

function go(frame) {
  choose({ frame: Math.max(0, Math.min(frames(), frame)) });
}

function stepName(of, frame) {
  const [first, last] = [of.first[frame - 1], of.last[frame - 1]];
  return first === last ? `Step ${first}` : `Steps ${first} to ${last}`;
}

function stepInWords() {
  const of = view().player;
  if (!chosen.frame) {
    const total = of.times.reduce((sum, each) => sum + each, 0);
    return `All ${counted(of.steps, "step")} at once: time ${few(total)}`;
  }
  const at = chosen.frame - 1;
  const used = of.start[at + 1] - of.start[at];
  return `${stepName(of, chosen.frame)} of ${of.steps}: ${counted(of.sends[at], "chunk")} over `
    + `${counted(used, "link")}, time ${few(of.times[at])}`;
}

// Sends of the chosen step, and of the chosen link or node if there is one.
function sendsShown() {
  const of = view().paths;
  if (!of || of.kind !== "sends" || !chosen.frame) return null;
  const frame = numbers(of, "frame");
  const [tail, head] = [numbers(fabric(), "tail"), numbers(fabric(), "head")];
  const link = numbers(of, "link");
  const found = [];
  for (let at = 0; at < frame.length; at++) {
    if (frame[at] !== chosen.frame - 1) continue;
    if (chosen.line !== null && link[at] !== chosen.line) continue;
    if (chosen.node !== null && tail[link[at]] !== chosen.node && head[link[at]] !== chosen.node) continue;
    found.push(at);
  }
  return found;
}

function listSends() {
  const found = sendsShown();
  const here = by("sends");
  here.replaceChildren();
  here.hidden = found === null;
  if (found === null) return;
  const of = view().paths;
  const nodes = terminals(fabric());
  const name = (position) => fabric().names[nodes[position]];
  const [source, destination, chunk, link] = ["source", "destination", "chunk", "link"].map((key) => numbers(of, key));
  here.append(table(["over the link", "chunk", "of the shard"], found.slice(0, LISTED).map((at) => [
    lineName(fabric(), link[at]), chunk[at], `${name(source[at])} → ${name(destination[at])}`,
  ]), [1]));
  const rest = found.length - LISTED;
  if (rest > 0) here.append(make("p", { class: "hint" }, `and ${counted(rest, "more send")}; choose a link or a node to see its own`));
  if (!of.all) here.append(make("p", { class: "hint" }, `of ${counted(of.sources.length, "source")} only`));
}

function pause() {
  clearInterval(player.timer);
  player.timer = null;
  by("play").setAttribute("aria-pressed", "false");
  by("play").textContent = "Play";
}

function playOrStop() {
  if (player.timer) { pause(); return; }
  if (chosen.frame === frames()) go(0);
  go(chosen.frame + 1);
  player.timer = setInterval(() => {
    if (chosen.frame >= frames()) pause();
    else go(chosen.frame + 1);
  }, PACE);
  by("play").setAttribute("aria-pressed", "true");
  by("play").textContent = "Pause";
}

const KEYS = {
  ArrowRight: () => go(chosen.frame + 1), ArrowLeft: () => go(chosen.frame - 1),
  Home: () => go(0), End: () => go(frames()), " ": playOrStop,
};

function startPlayer() {
  by("first").addEventListener("click", () => { pause(); go(0); });
  by("back").addEventListener("click", () => { pause(); go(chosen.frame - 1); });
  by("forth").addEventListener("click", () => { pause(); go(chosen.frame + 1); });
  by("play").addEventListener("click", playOrStop);
  by("step").addEventListener("input", (event) => { pause(); go(Number(event.target.value)); });
  document.addEventListener("keydown", (event) => {
    const busy = event.target.closest("input, select, button, summary, .scroll");
    const act = KEYS[event.key];
    if (!act || busy || !view().player || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (event.key !== " ") pause();
    act();
  });
}

parts.push((before) => {
  const of = view().player;
  by("player").hidden = !of;
  if (before.view !== chosen.view) pause();
  if (!of) return;
  by("step").max = String(frames());
  by("step").value = String(chosen.frame);
  by("step").setAttribute("aria-valuetext", chosen.frame ? stepName(of, chosen.frame) : "all steps");
  by("step-info").textContent = stepInWords();
  listSends();
});
