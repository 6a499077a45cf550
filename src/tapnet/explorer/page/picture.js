// Drawing: the graph at each level as SVG, on the page and in the downloaded file.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const MARGIN = 20;

// Okabe and Ito's colours: told apart by the colour-blind, and in this order by their grey as well.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
const OTHER = "#777777";
// For degrees, which have an order: dark for few neighbours, bright for many.
const SCALE = ["#3b528b", "#2c728e", "#21918c", "#5ec962", "#fde725"];

// ---- what is drawn where ----

/** How a graph is drawn at every level: places in the picture's units, radius, colours and the legend. */
export function plan(view, places) {
  const height = Math.max(0.4, ...places.map((p) => p[1])) * (WIDTH - 2 * MARGIN);
  const free = height - Math.max(...places.map((p) => p[1])) * (WIDTH - 2 * MARGIN);
  const top = Math.max(...places.map((p) => p[1]));
  const at = places.map(([x, y]) => [
    MARGIN + x * (WIDTH - 2 * MARGIN),
    MARGIN + free / 2 + (top - y) * (WIDTH - 2 * MARGIN), // upwards, as in the pictures of `tapnet show`
  ]);
  const radius = usualRadius(view, at, height);
  const mark = radius >= 5 ? marks(view) : null;
  return { at, height: height + 2 * MARGIN, radius, mark, ...colouring(view, mark) };
}

/** What stands in a node, so that colour is not all that tells categories apart: the name, two letters, or a number. */
function marks(view) {
  const names = view.categories;
  if (view.features === "attributes") return null;
  if (view.features === "degrees" || names.every((name) => name.length <= 3)) return names;
  const letters = names.map((name) => name.slice(0, 2));
  return new Set(letters).size === names.length ? letters : names.map((_, i) => String(i + 1));
}

function usualRadius(view, at, height) {
  const lengths = view.edges.map(([u, v]) => Math.hypot(at[u][0] - at[v][0], at[u][1] - at[v][1]));
  lengths.sort((a, b) => a - b);
  const usual = lengths.length ? lengths[lengths.length >> 1] : WIDTH / 4;
  const room = Math.sqrt((WIDTH * height) / at.length);
  return Math.min(13, Math.max(1.3, Math.min(0.38 * usual, 0.3 * room)));
}

/** A category's name; a mere number says what it is the number of. */
export function categoryName(view, c) {
  const name = view.categories[c];
  return /^-?[\d.]+$/.test(name) ? `${view.features === "degrees" ? "degree" : "label"} ${name}` : name;
}

function colouring(view, mark) {
  const count = view.categories.map(() => 0);
  for (const c of view.category) count[c] += 1;
  return view.features === "degrees" ? byDegree(view, count) : byCategory(view, count, mark);
}

function byCategory(view, count, mark) {
  const frequent = count.map((_, c) => c).sort((a, b) => count[b] - count[a]);
  const named = new Set(frequent.slice(0, count.length > COLOURS.length ? COLOURS.length - 1 : COLOURS.length));
  const colour = new Map([...named].sort((a, b) => a - b).map((c, i) => [c, COLOURS[i]]));
  const entry = (c) => (mark && mark[c] !== view.categories[c] ? `${mark[c]}: ` : "") + categoryName(view, c);
  const legend = [...colour].map(([c, fill]) => ({ name: entry(c), fill, count: count[c] }));
  const rest = count.reduce((sum, n, c) => sum + (named.has(c) ? 0 : n), 0);
  if (rest) legend.push({ name: `${count.length - named.size} others`, fill: OTHER, count: rest });
  return { fill: view.category.map((c) => colour.get(c) ?? OTHER), legend };
}

function byDegree(view, count) {
  const degrees = view.categories.map(Number);
  const top = Math.log(Math.max(2, ...degrees));
  const bin = degrees.map((d) => Math.min(SCALE.length - 1, Math.floor((Math.log(Math.max(d, 1)) / top) * SCALE.length)));
  const legend = SCALE.map((fill, b) => {
    const inside = degrees.filter((_, c) => bin[c] === b);
    const [low, high] = [Math.min(...inside), Math.max(...inside)];
    const nodes = count.reduce((sum, n, c) => sum + (bin[c] === b ? n : 0), 0);
    return { name: `degree ${low === high ? low : `${low} to ${high}`}`, fill, count: nodes };
  });
  return { fill: view.category.map((c) => SCALE[bin[c]]), legend: legend.filter((entry) => entry.count) };
}

/** Level 0 is the input, level i what the i-th pooling kept: its nodes, each one's share of the highest score, edges. */
export function level(view, number) {
  const layer = view.layers[Math.max(number - 1, 0)];
  const inside = new Set(number === 0 ? view.nodes.keys() : layer.nodes.filter((_, i) => layer.kept[i]));
  const share = new Map();
  if (layer) {
    const known = layer.score.filter((s) => s !== null); // some layers give no scores of dropped nodes, or none at all
    const low = Math.min(...known);
    const range = Math.max(...known) - low;
    const part = (s) => (s !== null && range > 0 ? (s - low) / range : 0.5);
    layer.nodes.forEach((node, i) => share.set(node, part(layer.score[i])));
  }
  const edges = view.edges.filter(([u, v]) => inside.has(u) && inside.has(v));
  const name = number === 0 ? "Input" : `After pooling ${number}`;
  return { name, inside, share, edges };
}

export const size = (plan, share = 0.5) => plan.radius * (0.75 + 0.45 * share);

// ---- SVG ----

function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const point = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
const lines = (edges, at) => edges.map(([u, v]) => `M${point(at[u])}L${point(at[v])}`).join("");

/** One level of the graph. Kept nodes are circles, dropped ones grey dots; all edges are two paths. */
export function draw(view, plan, level) {
  const { at, radius } = plan;
  const dropped = at.filter((_, node) => !level.inside.has(node));
  const thin = Math.min(1.6, Math.max(0.35, radius / 5));
  const picture = element("svg", { viewBox: `0 0 ${WIDTH} ${plan.height.toFixed(1)}` });
  if (dropped.length) {
    picture.append(element("path", { class: "faint", "stroke-width": thin, d: lines(view.edges, at) }));
    const dots = dropped.map((p) => `M${point(p)}h0`).join("");
    picture.append(element("path", { class: "dots", "stroke-width": (0.9 * radius).toFixed(1), d: dots }));
  }
  const opacity = Math.min(1, Math.max(0.25, 20 / Math.sqrt(view.edges.length + 1))).toFixed(2);
  const stroke = { class: "edges", "stroke-width": thin, "stroke-opacity": opacity };
  picture.append(element("path", { ...stroke, d: lines(level.edges, at) }));
  const letters = [];
  for (const node of level.inside) {
    const [x, y] = at[node];
    const r = size(plan, level.share.get(node));
    const fill = plan.fill[node];
    const shape = { cx: x.toFixed(1), cy: y.toFixed(1), r: r.toFixed(1), fill };
    picture.append(element("circle", { class: "node", "data-node": node, "stroke-width": thin / 2, ...shape }));
    if (!plan.mark) continue;
    const word = plan.mark[view.category[node]];
    const height = (r * Math.min(1.05, 2.2 / word.length)).toFixed(1);
    const text = { class: "letter", x: shape.cx, y: shape.cy, "font-size": height, fill: ink(fill) };
    letters.push(element("text", text, clean(word)));
  }
  picture.append(...letters);
  return picture;
}

/** A ring around the chosen node; nothing if none is chosen. */
export function mark(picture, plan, level, node) {
  picture.querySelector(".ring")?.remove();
  if (node === null) return;
  const [cx, cy] = plan.at[node];
  const r = (level.inside.has(node) ? size(plan, level.share.get(node)) : plan.radius / 2) + 2.5;
  picture.append(element("circle", { class: "ring", cx, cy, r, "stroke-width": 2.5 }));
}

/** The sample of a legend's entry. */
export function swatch(fill) {
  const shape = fill === null ? { class: "gone", r: 4 } : { r: 7, fill };
  return element("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, element("circle", { cx: 8, cy: 8, ...shape }));
}

/** Dark or white letters, whichever stand out more. */
function ink(fill) {
  const [r, g, b] = [1, 3, 5].map((i) => (parseInt(fill.slice(i, i + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.25 ? "#111111" : "#ffffff";
}

/** Text that XML can hold. */
function clean(text) {
  // eslint-disable-next-line no-control-regex -- XML 1.0 cannot hold them
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd");
}

// ---- the file ----

const STYLE = `
  text { font-family: system-ui, sans-serif }
  .words { fill: #1c232b; font-size: 13px } .soft { fill: #55606d; font-size: 13px }
  .title { fill: #1c232b; font-size: 16px; font-weight: 600 }
  .faint { fill: none; stroke: #dde2e7 } .edges { fill: none; stroke: #5c6672 }
  .dots { fill: none; stroke: #b4bcc5; stroke-linecap: round } .node { stroke: #ffffff }
  .letter { font-weight: 600; text-anchor: middle; dominant-baseline: central }`;

/** The whole picture as the text of an SVG file that needs nothing else: title, every level, legend. */
export function pictureFile(view, plan, title, caption) {
  const levels = [...Array(view.layers.length + 1).keys()].map((number) => level(view, number));
  const width = levels.length * (WIDTH + 20) + 20;
  const height = plan.height + 150;
  const whole = element("svg", { xmlns: SVG, viewBox: `0 0 ${width} ${height.toFixed(0)}`, width, height });
  whole.append(element("title", {}, clean(title)), element("style", {}, STYLE));
  whole.append(element("rect", { width, height, fill: "#ffffff" }));
  whole.append(element("text", { class: "title", x: 20, y: 30 }, clean(title)));
  whole.append(element("text", { class: "soft", x: 20, y: 50 }, clean(caption)));
  levels.forEach((one, number) => {
    const x = 20 + number * (WIDTH + 20);
    const words = `${one.inside.size} nodes, ${one.edges.length} edges`;
    whole.append(element("text", { class: "words", x, y: 82 }, one.name), element("text", { class: "soft", x, y: 99 }, words));
    const picture = draw(view, plan, one);
    for (const [key, value] of Object.entries({ x, y: 104, width: WIDTH, height: plan.height })) {
      picture.setAttribute(key, value);
    }
    whole.append(picture);
  });
  let x = 28;
  for (const { name, fill } of [...plan.legend, { name: "dropped", fill: "#b4bcc5" }]) {
    const text = clean(name).slice(0, 24);
    whole.append(element("circle", { cx: x, cy: height - 24, r: 6, fill }));
    whole.append(element("text", { class: "words", x: x + 12, y: height - 19 }, text));
    x += 36 + 8 * text.length;
  }
  return new XMLSerializer().serializeToString(whole);
}
