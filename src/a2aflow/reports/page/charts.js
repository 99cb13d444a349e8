// The charts, by Plotly, in the colours of the page.

const CHART = { displayModeBar: false, responsive: true };

// Plotly reads tags in labels; a name has none.
const label = (name) => name.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function axis(more) {
  return { gridcolor: colour("--line"), linecolor: colour("--line"), zerolinecolor: colour("--line"),
    fixedrange: true, automargin: true, ...more };
}

function layout(more) {
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
    font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 13 },
    margin: { l: 56, r: 12, t: 8, b: 44 }, showlegend: false, bargap: 0.08, ...more,
  };
}

function chart(id, traces, shape) {
  return Plotly.react(by(id), traces, layout(shape), CHART);
}

function drawHistogram() {
  const here = view();
  by("loads").hidden = here.kind === "topology";
  if (here.kind === "topology") return;
  const bins = here.histogram.length;
  const shades = shadesOf(["--r0", "--r1", "--r2"]);
  const middle = here.histogram.map((_, at) => (100 * (at + 0.5)) / bins);
  chart("histogram", [{
    type: "bar", x: middle, y: here.histogram, width: 100 / bins,
    marker: { color: middle.map((each) => shades[shadeOf(each / 100)]) },
    customdata: middle.map((each) => [each - 50 / bins, each + 50 / bins]),
    hovertemplate: "%{y} links, busy %{customdata[0]} to %{customdata[1]} % of the time<extra></extra>",
  }], {
    xaxis: axis({ range: [0, 101], dtick: 25, title: { text: "busy, % of the time" } }),
    yaxis: axis({ title: { text: "links" }, rangemode: "tozero" }),
  });
  by("fullest").replaceChildren(table(["link", "busy"], here.fullest.map(([name, share]) => [name, percent(share)]), [1]));
}

function drawSteps() {
  const of = view().player;
  by("steps").hidden = !of || of.times.length < 2;
  if (!of || of.times.length < 2) return;
  const here = of.times.map((_, at) => at + 1);
  chart("steps", [{
    type: "bar", x: here, y: of.times,
    marker: { color: here.map((at) => colour(at === chosen.frame ? "--way" : "--node")) },
    customdata: here.map((at) => [stepName(of, at), of.sends[at - 1]]),
    hovertemplate: "%{customdata[0]}: time %{y}, %{customdata[1]} sends<extra></extra>",
  }], {
    xaxis: axis({
      title: { text: of.stepsEach === 1 ? "step" : `${of.stepsEach} steps each` },
      dtick: Math.max(1, Math.ceil(here.length / 12)), tick0: 1, tickformat: "d", showgrid: false,
    }),
    yaxis: axis({ title: { text: "time" }, rangemode: "tozero", nticks: 4 }),
    bargap: 0.25,
  });
  if (!by("steps").heard) {
    by("steps").heard = true;
    by("steps").on("plotly_click", (event) => go(event.points[0].x));
  }
}

const answers = () => content.views.filter((each) => each.kind !== "topology");
const nameOfAnswer = (each) => `${each.method}, ${shortName(each.name)}`;

function drawComparison() {
  const rows = answers().filter((each) => each.ratio);
  by("compare").hidden = answers().length < 2;
  if (answers().length < 2) return;
  by("bars").style.height = `${3.5 + 2.2 * rows.length}rem`;
  const behind = rows.map((each) => content.fabrics[each.fabric].name);
  chart("bars", [{
    type: "bar", orientation: "h", x: rows.map((each) => each.ratio),
    y: rows.map((_, at) => at), customdata: behind.map(label),
    marker: { color: rows.map((each) => colour(each === view() ? "--way" : "--node")) },
    text: rows.map((each) => few(each.ratio, 4)), textposition: "auto",
    hovertemplate: "%{customdata}: %{x} times the bound<extra></extra>",
  }], {
    xaxis: axis({ rangemode: "tozero", nticks: 8 }),
    yaxis: axis({ tickvals: rows.map((_, at) => at), ticktext: rows.map((each) => label(nameOfAnswer(each))), autorange: "reversed" }),
    shapes: [{ type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: { color: colour("--r2"), dash: "dot" } }],
    margin: { l: 12, r: 12, t: 8, b: 28 }, bargap: 0.35,
  });
}

function drawRuns() {
  by("runs").hidden = !content.runs.length;
  if (!content.runs.length) return;
  const dashes = { "certified bound": "dot", "the library's own": "dash" };
  const paints = ["--node", "--r1", "--way", "--good", "--r2", "--relay"];
  const traces = content.runs.flatMap((run, at) => run.curves.map((curve) => ({
    type: "scatter", mode: "lines+markers", x: run.bytes, y: curve.values.map((each) => each && each / 1e9),
    name: label(`${shortName(run.name)}: ${curve.name}`), connectgaps: false,
    line: { color: colour(paints[at % paints.length]), dash: dashes[curve.name] || "solid" },
    hovertemplate: "%{x} bytes: %{y:.4g} GB/s<extra></extra>",
  })));
  chart("curves", traces, {
    xaxis: axis({ type: "log", title: { text: "bytes of a shard" } }),
    yaxis: axis({ title: { text: "GB/s per node" }, rangemode: "tozero" }),
    showlegend: true, legend: { orientation: "h", y: -0.3 },
  });
}

function drawCharts() {
  if (typeof Plotly === "undefined") return;
  for (const each of [drawHistogram, drawSteps, drawComparison, drawRuns]) each();
}

function startCharts() {
  parts.push((before) => {
    if (before.view !== chosen.view) drawCharts();
    else if (before.frame !== chosen.frame) drawSteps();
  });
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => { drawSoon(); drawCharts(); });
  drawCharts();
}
