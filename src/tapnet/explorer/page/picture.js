// Drawing: the graph at each level as SVG, on the page and in the downloaded file.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const MARGIN = 20;

// Okabe and Ito's colours: told apart by the colour-blind, and in this order by their grey as well.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
const OTHER = "#777777";
// What speaks for the target and against it, pale enough for letters on it; as in the pictures of `tapnet explain`.
const [FOR, AGAINST] = ["#f0a43c", "#5aa2d6"];
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
  const gone = new Set(view.without);
  const all = [...view.nodes.keys()].filter((node) => !gone.has(node));
  const inside = new Set(number === 0 ? all : layer.nodes.filter((_, i) => layer.kept[i]));
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
const pair = ([u, v]) => `${u} ${v}`;

/**
 * Edges as a path; in a directed graph each with an arrowhead on its way, and two between the same nodes apart.
 * The bonds of a molecule are one, two or three lines.
 */
function lines(view, edges, at) {
  if (view.directed) {
    const pairs = new Set(view.edges.map(pair));
    return edges.map(([u, v]) => arrow(at[u], at[v], pairs.has(pair([v, u])))).join("");
  }
  const orders = new Map(view.bonds ? view.edges.map((ends, i) => [pair(ends), view.bonds[i]]) : []);
  return edges.map((ends) => bond(at[ends[0]], at[ends[1]], orders.get(pair(ends)) ?? 1)).join("");
}

/** So many lines beside each other. */
function bond(from, to, order) {
  const length = Math.max(1e-6, Math.hypot(to[0] - from[0], to[1] - from[1]));
  const [x, y] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const shifted = ([px, py], across) => point([px - across * y, py + across * x]);
  const apart = Math.min(5, 0.12 * length);
  const line = (_, i) => {
    const across = apart * (i - (order - 1) / 2);
    return `M${shifted(from, across)}L${shifted(to, across)}`;
  };
  return Array.from({ length: order }, line).join("");
}

function arrow(from, to, bothWays) {
  const length = Math.max(1e-6, Math.hypot(to[0] - from[0], to[1] - from[1]));
  const [x, y] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const aside = bothWays ? 3 : 0;
  const head = Math.min(6, 0.4 * length);
  const at = (along, across) => point([from[0] + along * x - across * y, from[1] + along * y + across * x]);
  const tip = 0.6 * length + head / 2;
  const wings = [-1, 1].map((side) => `M${at(tip - head, aside + 0.45 * side * head)}L${at(tip, aside)}`).join("");
  return `M${at(0, aside)}L${at(length, aside)}${wings}`;
}

/** One level of the graph. Kept nodes are circles, dropped ones grey dots; all edges are two paths. */
export function draw(view, plan, level) {
  const { at, radius } = plan;
  const dropped = at.filter((_, node) => !level.inside.has(node));
  const thin = Math.min(1.6, Math.max(0.35, radius / 5));
  const picture = element("svg", { viewBox: `0 0 ${WIDTH} ${plan.height.toFixed(1)}` });
  if (dropped.length) {
    picture.append(element("path", { class: "faint", "stroke-width": thin, d: lines(view, view.edges, at) }));
    const dots = dropped.map((p) => `M${point(p)}h0`).join("");
    picture.append(element("path", { class: "dots", "stroke-width": (0.9 * radius).toFixed(1), d: dots }));
  }
  const opacity = Math.min(1, Math.max(0.25, 20 / Math.sqrt(view.edges.length + 1))).toFixed(2);
  const stroke = { class: "edges", "stroke-width": thin, "stroke-opacity": opacity };
  picture.append(element("path", { ...stroke, d: lines(view, level.edges, at) }));
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

// ---- attribution ----

/** White for 0, the full colour at the end of the scale. */
function diverging(value, largest) {
  const share = Math.min(1, Math.abs(value) / largest);
  const channel = (i) => Math.round(255 + share * (parseInt((value < 0 ? AGAINST : FOR).slice(i, i + 2), 16) - 255));
  return `#${[1, 3, 5].map((i) => channel(i).toString(16).padStart(2, "0")).join("")}`;
}

/** The largest absolute value of nodes and edges: where the scale ends. */
export const largestOf = (found) => Math.max(1e-12, ...[...found.nodes, ...found.edges].map(Math.abs));

/**
 * The graph with what each node and edge does for the prediction; found is null while that is not known.
 * The larger a circle and the wider a line, the more. Against has a thick outline, for grey print and the colour-blind.
 */
export function drawAttribution(view, plan, found, largest, without = []) {
  const { at, radius } = plan;
  const gone = new Set(without);
  const thin = Math.min(1.6, Math.max(0.35, radius / 5));
  const strength = (value) => Math.sqrt(Math.min(1, Math.abs(value) / largest));
  const picture = element("svg", { viewBox: `0 0 ${WIDTH} ${plan.height.toFixed(1)}` });
  const [there, away] = [[], []];
  view.edges.forEach((ends, i) => (ends.some((node) => gone.has(node)) ? away : there).push(i));
  const path = (edges) => lines(view, edges.map((i) => view.edges[i]), at);
  if (away.length) picture.append(element("path", { class: "faint", "stroke-width": thin, d: path(away) }));
  picture.append(element("path", { class: "edges", "stroke-width": thin, d: path(there) }));
  for (const i of found ? there : []) {
    const part = strength(found.edges[i]);
    if (part < 0.1) continue;
    const width = (thin * (1 + 2.5 * part)).toFixed(1);
    const d = lines({ ...view, bonds: null }, [view.edges[i]], at); // as wide as it counts, whatever the bond
    picture.append(element("path", { class: "edges", "stroke-width": Number(width) + 1, d }));
    picture.append(element("path", { class: "band", stroke: diverging(found.edges[i], largest), "stroke-width": width, d }));
  }
  if (view.bonds) picture.append(element("path", { class: "edges", "stroke-width": thin / 2, d: path(there) }));
  const letters = [];
  at.forEach(([x, y], node) => {
    const value = found?.nodes[node] ?? 0;
    const r = radius * (0.75 + 0.45 * strength(value));
    const shape = { "data-node": node, cx: x.toFixed(1), cy: y.toFixed(1), r: r.toFixed(1) };
    const kind = gone.has(node) ? "away" : value < 0 ? "against" : "for";
    const fill = gone.has(node) ? "none" : diverging(value, largest);
    const line = kind === "against" ? Math.max(1.2, 1.5 * thin) : thin / 2;
    picture.append(element("circle", { class: kind, ...shape, fill, "stroke-width": line.toFixed(1) }));
    if (!plan.mark) return;
    const word = plan.mark[view.category[node]];
    const height = (r * Math.min(1.05, 2.2 / word.length)).toFixed(1);
    const ink = { class: gone.has(node) ? "letter lost" : "letter", fill: "#111111" };
    letters.push(element("text", { ...ink, x: shape.cx, y: shape.cy, "font-size": height }, clean(word)));
  });
  picture.append(...letters);
  return picture;
}

/** The scale below the picture. */
export function colourScale(id) {
  const steps = [AGAINST, "#ffffff", FOR].map((colour, i) => element("stop", { offset: i / 2, "stop-color": colour }));
  const bar = { x: 0.5, y: 0.5, width: 199, height: 11, fill: `url(#${id})`, stroke: "#777777" };
  return element(
    "svg",
    { viewBox: "0 0 200 12", width: 200, height: 12, "aria-hidden": "true", class: "scale" },
    element("linearGradient", { id }, ...steps),
    element("rect", bar),
  );
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
  .dots { fill: none; stroke: #b4bcc5; stroke-linecap: round } .node { stroke: #ffffff } .band { fill: none }
  .for { stroke: #777777 } .against { stroke: #1b3a57 } .away { stroke: #777777; stroke-dasharray: 2 2 }
  .lost { opacity: 0.4 }
  .letter { font-weight: 600; text-anchor: middle; dominant-baseline: central }`;

/** Lines of about so many characters. */
function wrapped(text, most) {
  return text.split(" ").reduce((rows, word) => {
    const last = rows.length - 1;
    if (last >= 0 && rows[last].length + word.length < most) rows[last] += ` ${word}`;
    else rows.push(word);
    return rows;
  }, []);
}

/**
 * The whole picture as the text of an SVG file that needs nothing else: title, captions, panels, scale and legend.
 * A panel has a name, words, the height of its picture and the picture.
 */
export function pictureFile(title, captions, panels, legend, scale) {
  const width = Math.max(2, panels.length) * (WIDTH + 20) + 20;
  const rows = captions.flatMap((text) => wrapped(clean(text), width / 7));
  const top = 50 + 18 * rows.length;
  const height = top + 24 + Math.max(...panels.map((panel) => panel.height)) + (scale ? 76 : 46);
  const whole = element("svg", { xmlns: SVG, viewBox: `0 0 ${width} ${height.toFixed(0)}`, width, height });
  whole.append(element("title", {}, clean(title)), element("style", {}, STYLE));
  whole.append(element("rect", { width, height, fill: "#ffffff" }));
  whole.append(element("text", { class: "title", x: 20, y: 30 }, clean(title)));
  rows.forEach((row, i) => whole.append(element("text", { class: "soft", x: 20, y: 50 + 18 * i }, row)));
  panels.forEach(({ name, words, picture, height: own }, number) => {
    const x = 20 + number * (WIDTH + 20);
    whole.append(element("text", { class: "words", x, y: top + 2 }, clean(name)));
    whole.append(element("text", { class: "soft", x, y: top + 19 }, clean(words)));
    for (const [key, value] of Object.entries({ x, y: top + 24, width: WIDTH, height: own })) {
      picture.setAttribute(key, value);
    }
    whole.append(picture);
  });
  if (scale) {
    const bar = colourScale("file-scale");
    for (const [key, value] of Object.entries({ x: 20, y: height - 64 })) bar.setAttribute(key, value);
    whole.append(bar, element("text", { class: "soft", x: 230, y: height - 54 }, clean(scale)));
  }
  let x = 28;
  for (const { name, fill } of legend) {
    const text = clean(name).slice(0, 24);
    whole.append(element("circle", { cx: x, cy: height - 24, r: 6, fill }));
    whole.append(element("text", { class: "words", x: x + 12, y: height - 19 }, text));
    x += 36 + 8 * text.length;
  }
  return new XMLSerializer().serializeToString(whole);
}
