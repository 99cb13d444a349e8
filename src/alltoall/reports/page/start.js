"use strict";
// The content, the choice of the reader, and small tools of all parts.

// Compressed JSON as base64: a fifth of its size.
let content = null;

async function readContent() {
  const packed = Uint8Array.from(atob(document.getElementById("content").textContent), (each) => each.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  content = JSON.parse(await new Response(stream).text());
}

const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };

// Arrays stand in the page as text. They are unpacked when they are first needed, and kept.
function numbers(owner, key) {
  const packed = owner[key];
  if (packed && packed.base64 !== undefined) {
    const text = atob(packed.base64);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    owner[key] = new ARRAYS[packed.kind](bytes.buffer);
  }
  return owner[key];
}

const by = (id) => document.getElementById(id);

// Names are text and never HTML: children that are strings become text nodes.
function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map(String));
  return made;
}

function row(tag, cells, numeric) {
  const made = make("tr", {});
  cells.forEach((cell, at) => {
    made.append(make(tag, numeric.includes(at) ? { class: "number" } : {}, cell));
  });
  return made;
}

function table(head, rows, numeric = []) {
  const made = make("table", {});
  const top = make("thead", {});
  const body = make("tbody", {});
  top.append(row("th", head, numeric));
  body.append(...rows.map((cells) => row("td", cells, numeric)));
  made.append(top, body);
  return made;
}

function few(number, digits = 6) {
  return String(Number(number.toPrecision(digits)));
}

function percent(share) {
  return `${few(100 * share, 4)} %`;
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The choice of the reader. A frame of 0 is the whole of a schedule; lines and nodes by number, or null.
const chosen = { view: 0, frame: 0, line: null, node: null, source: null, destination: null };
const parts = [];

function choose(change) {
  const before = { ...chosen };
  Object.assign(chosen, change);
  for (const part of parts) part(before);
}

const view = () => content.views[chosen.view];
const fabric = () => content.fabrics[view().fabric];

// Terminals in their order: the nodes that send and receive.
function terminals(of) {
  if (!of.terminalNodes) {
    const flags = numbers(of, "isTerminal");
    of.terminalNodes = [];
    flags.forEach((flag, node) => { if (flag) of.terminalNodes.push(node); });
  }
  return of.terminalNodes;
}

function lineName(of, line) {
  return `${of.names[numbers(of, "tail")[line]]} → ${of.names[numbers(of, "head")[line]]}`;
}

const shortName = (name) => content.names[name] || name;
