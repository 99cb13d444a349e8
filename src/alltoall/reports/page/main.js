// The page as a whole: the chosen file, its headline and numbers, and next commands.

const PROVEN = 1e-9; // A gap up to this cannot be told from rounding.

const gapInWords = (gap) => (gap <= PROVEN ? "0 %" : percent(gap));

function showHeadline() {
  const of = view().headline;
  const size = `${counted(fabric().nodes, "node")}, ${counted(fabric().links, "link")}`;
  by("answer").textContent = of ? of.answer : size;
  by("answer").className = of && of.optimal ? "good" : "";
  by("versus").textContent = of ? of.versus : "A network without routes or a schedule so far.";
  by("proof").textContent = of ? `Proof: ${of.proof}.` : "";
}

function showNumbers() {
  const list = by("numbers").querySelector("dl");
  list.replaceChildren(...view().facts.flatMap(([key, text]) => [make("dt", {}, key), make("dd", {}, text)]));
  by("legend").hidden = view().kind === "topology";
}

function showTable() {
  by("table").replaceChildren(table(
    ["file", "kind", "method", "topology", "time", "bound", "gap", "over the best bound"],
    answers().map((each) => [
      shortName(each.name), each.kind, each.method, content.fabrics[each.fabric].name, few(each.time),
      each.bound === null ? "none" : few(each.bound), each.gap === null ? "unknown" : gapInWords(each.gap),
      each.ratio ? few(each.ratio, 5) : "unknown",
    ]), [4, 5, 6, 7]));
}

function showRows() {
  by("rows").replaceChildren(table(["file", "kind", "bytes of a shard", "curve", "GB/s per node"],
    content.runs.flatMap((run) => run.curves.flatMap((curve) => curve.values.map((each, at) => [
      shortName(run.name), run.title, run.bytes[at].toLocaleString("en"), curve.name, each === null ? "none" : few(each / 1e9, 4),
    ]))), [2, 4]));
}

function showNext() {
  const commands = view().next;
  by("next").hidden = !commands.length;
  by("next").querySelector("ul").replaceChildren(...commands.map(({ why, command }) => {
    const item = make("li", {});
    const copy = make("button", { type: "button", "aria-label": `Copy: ${command}` }, "Copy");
    copy.addEventListener("click", () => copyText(command, copy));
    item.append(make("span", {}, why), make("code", {}, command), copy);
    return item;
  }));
}

// A page that was opened from a file may not have the clipboard of newer browsers.
async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.body.appendChild(make("textarea", {}, text));
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

function showChooser() {
  by("choose").hidden = content.views.length < 2;
  by("view").replaceChildren(...content.views.map((each, at) =>
    make("option", { value: at }, each.kind === "topology" ? shortName(each.name) : nameOfAnswer(each))));
  by("view").addEventListener("change", (event) => choose({
    view: Number(event.target.value), frame: 0, line: null, node: null, source: null, destination: null,
  }));
}

parts.push((before) => {
  if (before.view === chosen.view) return;
  by("view").value = String(chosen.view);
  showHeadline();
  showNumbers();
  showNext();
});

function start() {
  showChooser();
  showTable();
  showRows();
  startDrawing();
  startPlayer();
  startPairs();
  startCharts();
  if (!content.views.length) {
    for (const id of ["headline", "network", "numbers", "loads"]) by(id).hidden = true;
    drawRuns();
    return;
  }
  chosen.view = -1;
  choose({ view: 0 });
}

readContent().then(() => {
  start();
  document.documentElement.dataset.ready = "yes";
}, () => { by("old").hidden = false; });
