// The page: the chosen graph, settings and node, and everything that shows them.

import { ask, at, csv, fillTable, made, percent, save, short, signed } from "/dom.js";
import {
  categoryName,
  colourScale,
  draw,
  drawAttribution,
  largestOf,
  level,
  mark,
  pictureFile,
  plan,
  size,
  swatch,
} from "/picture.js";

const LISTED = 500; // graphs in the list at once
const ROWS = 200; // nodes in the table of all
const MANY = 150; // nodes; more need larger pictures
const PAUSE = 150; // milliseconds without a key before the server searches

/** What is shown. The server stores none of it: a file is sent again with every change. */
const state = {
  model: null,
  graphs: null, // the data set's, in columns
  predicted: [], // class of each, as the answers come in
  matching: [], // numbers of those that the filters let through
  found: null, // {text, nodes}: graphs that have the text in the name of their file or of a node
  source: null, // {number, node} or {file}; with places, nodes without which it is shown, and its attribution
  method: "surrogate",
  compared: null, // {view, plan, attribution} of the graph that stays for comparison
  connectivity: null,
  ratios: [],
  view: null,
  plan: null,
  levels: [],
  node: null,
  sticky: true, // whether the card of the node stays in sight
};

// ---- requests ----

/** A query with the sliders' values, where they are not the model's own. */
function sliderQuery(more) {
  const wanted = new URLSearchParams(more);
  if (isAsTrained()) return wanted;
  if (state.connectivity !== null) wanted.set("connectivity", state.connectivity);
  if (state.ratios.length) wanted.set("ratios", state.ratios.map(asText).join(","));
  return wanted;
}

function askAbout(source, wanted, ofGraph, ofFile) {
  if (source.file === undefined) return ask(`/api/graphs/${source.number}${ofGraph}?${wanted}`);
  wanted.set("name", source.file.name.slice(-200));
  return ask(`/api/${ofFile}?${wanted}`, { method: "POST", body: source.file });
}

function askForView(source, places) {
  const wanted = sliderQuery({ places });
  if (source.without?.length) wanted.set("without", source.without.join(","));
  return askAbout(source, wanted, "", "graph");
}

// A ratio with a point is a share of the nodes; a whole number is a number of nodes.
const asText = (ratio, i) => (isShare(i) ? ratio.toFixed(2) : String(ratio));
const isShare = (i) => !state.model.whole[i];

let asking = false;
let changed = false;

/** Shows what the state asks for. While an answer is on its way, changes wait, and only the last one counts. */
async function update() {
  changed = true;
  if (asking) return;
  asking = true;
  at("graph").setAttribute("aria-busy", "true");
  while (changed) {
    changed = false;
    const source = state.source;
    const isNew = source.places === undefined;
    try {
      const view = await askForView(source, isNew);
      if (source !== state.source) continue;
      if (isNew) {
        source.places = view.places;
        state.node = source.node ?? null;
        enlarge(view.nodes.length > MANY);
      }
      state.view = { ...view, places: source.places };
      say("");
      show();
      attribute();
    } catch (error) {
      if (source !== state.source) continue;
      say(error.message, source.file !== undefined);
      if (source.without?.length) {
        source.without = state.view && !isNew ? state.view.without : []; // of a bookmark that does not fit
        changed ||= isNew;
        if (isNew) continue;
      }
      if (isNew && state.view) state.source = state.shown; // what is on the page stays
      markChosen();
    }
    state.shown = state.source;
  }
  asking = false;
  at("graph").setAttribute("aria-busy", "false");
}

let attributing = false;

/** What the prediction rests on: asked for when the graph, the method or a slider has changed. */
async function attribute() {
  if (attributing) return;
  attributing = true;
  at("rests").setAttribute("aria-busy", "true");
  for (;;) {
    const source = state.source;
    const wanted = String(sliderQuery({ method: state.method }));
    if (source.attributed === wanted) break;
    source.attributed = wanted;
    try {
      source.attribution = await askAbout(source, new URLSearchParams(wanted), "/attribution", "attribution");
      source.trouble = "";
    } catch (error) {
      source.attribution = null;
      source.trouble = error.message;
    }
    if (source === state.source && source === state.shown) showAttributed();
  }
  attributing = false;
  at("rests").setAttribute("aria-busy", "false");
}

/** What went wrong, beside the file or on top of the page. */
function say(message, aboutFile = false) {
  for (const [id, text] of [
    ["trouble", aboutFile ? "" : message],
    ["own-message", aboutFile ? message : ""],
  ]) {
    at(id).textContent = text;
    at(id).hidden = !text;
  }
  if (message && aboutFile) at("own").open = true;
}

// ---- choosing ----

function choose(number, without = []) {
  if (state.source?.number === number) return;
  state.source = { number, node: state.found?.nodes.get(number), without };
  at("file").value = "";
  markChosen();
  update();
}

async function chooseFile(file) {
  if (!file) return;
  if (file.size > state.model.largest_upload) {
    say(`${file.name} is larger than ${state.model.largest_upload >> 20} MB.`, true);
    return;
  }
  try {
    state.source = { file: new File([await file.arrayBuffer()], file.name) }; // as it is now, whatever becomes of it
  } catch {
    say(`${file.name} cannot be read.`, true);
    return;
  }
  markChosen();
  update();
}

let searching = Promise.resolve();

/** Names are searched by the server once the keys pause; numbers, classes and sizes are filtered here. */
function search() {
  const wanted = () => at("by-number").value.trim();
  const text = wanted();
  state.found = null;
  if (text === "" || !state.model.named) return;
  searching = new Promise((resolve) => setTimeout(resolve, PAUSE)).then(async () => {
    if (wanted() !== text) return;
    try {
      const { graphs, nodes, searched } = await ask(`/api/search?${new URLSearchParams({ text })}`);
      if (wanted() !== text) return;
      state.found = { nodes: new Map(graphs.map((number, i) => [number, nodes[i]])), searched };
      filter();
    } catch (error) {
      say(error.message);
    }
  });
}

function filter() {
  const { graphs, predicted } = state;
  if (!graphs) return;
  const value = (id) => at(id).value.trim();
  const [number, kind, right, part] = ["by-number", "by-class", "by-right", "by-part"].map(value);
  const least = Number(value("by-least")) || 0;
  const most = Number(value("by-most")) || Infinity;
  state.matching = [...graphs.class.keys()].filter(
    (i) =>
      (number === "" || String(i) === number.replace(/^#/, "") || state.found?.nodes.has(i)) &&
      (kind === "" || graphs.class[i] === Number(kind)) &&
      graphs.nodes[i] >= least &&
      graphs.nodes[i] <= most &&
      (right === "" || (isKnown(i) && predicted[i] !== undefined && isRight(i) === (right === "right"))) &&
      (part === "" || graphs.part?.[i] === part),
  );
  const waiting = right !== "" && predicted.length < graphs.class.length ? ", still predicting" : "";
  const partly = state.found && state.found.searched < graphs.class.length;
  const limit = partly ? `; node names: first ${state.found.searched} graphs only` : "";
  at("count").textContent = `${state.matching.length} of ${graphs.class.length} graphs${waiting}${limit}`;
  fillList();
  markChosen();
}

/** Those of the matching graphs that are around the chosen one: thousands of rows would be slow. */
function fillList() {
  const place = state.matching.indexOf(state.source?.number);
  const from = Math.max(0, Math.min(place - LISTED / 2, state.matching.length - LISTED));
  const rows = state.matching.slice(from, from + LISTED).map(item);
  const after = state.matching.length - from - LISTED;
  if (from > 0) rows.unshift(more(`${from} more above`));
  if (after > 0) rows.push(more(`${after} more below`));
  at("list").replaceChildren(...rows);
}

function more(text) {
  const row = made("li", { className: "more hint", textContent: text });
  row.setAttribute("role", "presentation");
  return row;
}

const isKnown = (i) => state.graphs.classes[state.graphs.class[i]] !== null;
const isRight = (i) => state.model.classes[state.predicted[i]] === state.graphs.classes[state.graphs.class[i]];

function item(i) {
  const { graphs, predicted } = state;
  const row = made("li", { id: `graph-${i}` });
  row.setAttribute("role", "option");
  const right = predicted[i] === undefined || !isKnown(i) ? "" : isRight(i) ? "✓" : "✗";
  const words = { "✓": "correct prediction", "✗": "incorrect prediction" }[right] ?? "";
  row.append(
    made("span", { className: "number", textContent: `#${i}` }),
    made("span", { textContent: graphs.classes[graphs.class[i]] }),
    made("span", { className: "nodes number", textContent: `${graphs.nodes[i]} nodes` }),
    made("span", { textContent: right, title: words, ariaHidden: "true" }),
  );
  if (words) row.append(made("span", { className: "unseen", textContent: words }));
  if (graphs.files) row.append(made("span", { className: "file", textContent: graphs.files[i], title: graphs.files[i] }));
  return row;
}

function markChosen() {
  const number = state.source?.number;
  const place = state.matching.indexOf(number);
  if (place >= 0 && !at(`graph-${number}`)) fillList();
  at("list").querySelector('[aria-selected="true"]')?.removeAttribute("aria-selected");
  const row = number === undefined ? null : at(`graph-${number}`);
  row?.setAttribute("aria-selected", "true");
  if (row) scrollTo(row);
  if (row) at("list").setAttribute("aria-activedescendant", row.id);
  else at("list").removeAttribute("aria-activedescendant");
  at("steps").hidden = number === undefined;
  at("previous").disabled = !neighbour(place, -1);
  at("next").disabled = !neighbour(place, 1);
}

/** Within the list alone; `scrollIntoView` would move the page and the place from which the Tab key starts. */
function scrollTo(row) {
  const list = at("list");
  const [top, bottom] = [row.offsetTop, row.offsetTop + row.offsetHeight];
  list.scrollTop = Math.max(Math.min(list.scrollTop, top), bottom - list.clientHeight);
}

/** The graph before or after one among those that match, as [number]; undefined where there is none. */
function neighbour(place, step) {
  const other = state.matching[place < 0 ? (step > 0 ? 0 : -1) : place + step];
  return other === undefined ? undefined : [other];
}

function step(by) {
  const other = neighbour(state.matching.indexOf(state.source?.number), by);
  if (other) choose(other[0]);
}

/** Predictions of the whole data set, part after part, for the marks in the list. */
async function predictAll() {
  const total = state.graphs.class.length;
  while (state.predicted.length < total) {
    const { predicted } = await ask(`/api/predictions?first=${state.predicted.length}`);
    if (!predicted.length) return;
    state.predicted.push(...predicted);
  }
  filter();
}

// ---- sliders ----

function makeSliders() {
  const { model } = state;
  const rows = at("slider-rows");
  rows.replaceChildren();
  if (model.connectivity !== null) {
    const [low, high] = [Math.min(0, 2 * model.connectivity), Math.max(1, 2 * model.connectivity)];
    rows.append(slider("connectivity", "Connectivity λ", low, high, 0.01));
    at("connectivity").addEventListener("input", (event) => {
      state.connectivity = event.target.valueAsNumber;
      change();
    });
  }
  model.ratios.forEach((_, i) => {
    const bounds = isShare(i) ? [0.05, 1, 0.01] : [1, 2 * model.ratios[i], 1];
    rows.append(slider(`ratio-${i}`, `Pooling ${i + 1} keeps`, ...bounds));
    at(`ratio-${i}`).addEventListener("input", (event) => {
      state.ratios[i] = event.target.valueAsNumber;
      change();
    });
  });
  at("sliders").hidden = !rows.childElementCount;
  showSliders();
}

function slider(id, words, min, max, step) {
  const row = made("div", { className: "slider" });
  row.append(
    made("label", { htmlFor: id, textContent: words }),
    made("input", { id, type: "range", min, max, step }),
    made("output", { id: `${id}-value`, htmlFor: id }),
  );
  return row;
}

function change() {
  showSliders();
  remember();
  update();
}

function showSliders() {
  const { model, view } = state;
  if (model.connectivity !== null) {
    at("connectivity").value = state.connectivity;
    at("connectivity-value").textContent = state.connectivity.toFixed(2);
  }
  model.ratios.forEach((_, i) => {
    const layer = view?.layers[i];
    const slide = at(`ratio-${i}`);
    slide.value = state.ratios[i];
    const share = isShare(i) ? `${Math.round(100 * state.ratios[i])} %` : `${state.ratios[i]} nodes`;
    const nodes = layer ? `${layer.kept.filter(Boolean).length} of ${layer.nodes.length}` : "";
    at(`ratio-${i}-value`).textContent = nodes ? `${share}: ${nodes}` : share;
    slide.setAttribute("aria-valuetext", nodes ? `${share}, ${nodes} nodes` : share);
  });
  at("reset").disabled = isAsTrained();
}

const isAsTrained = () =>
  state.connectivity === state.model.connectivity && state.ratios.every((r, i) => r === state.model.ratios[i]);

function reset() {
  state.connectivity = state.model.connectivity;
  state.ratios = [...state.model.ratios];
  change();
}

// ---- showing ----

const attributionOf = () => state.source.attribution ?? null;

function showAttributed() {
  showAttribution();
  showNode();
  if (at("all").open) showAll();
}

function show() {
  const { view } = state;
  state.shown = state.source;
  state.plan = plan(view, view.places);
  state.levels = [...Array(view.layers.length + 1).keys()].map((number) => level(view, number));
  showHeading();
  showPrediction();
  showSliders();
  showPanels();
  showLegend();
  showVotes();
  showAttributed();
  for (const id of ["save-svg", "save-csv", "save-json", "compare"]) at(id).disabled = false;
  remember();
}

function showHeading() {
  const { view } = state;
  at("title").textContent = view.title;
  document.title = `${view.title} · tapnet explore`;
  const parts = { test: "not used for training", validation: "used for validation", training: "used for training" };
  const facts = [`${view.nodes.length} nodes, ${view.edges.length} edges`];
  if (view.class !== null) facts.push(`class ${view.class}`);
  if (view.truth !== null) facts.push(`in the data: ${view.truth}`);
  if (view.part) facts.push(parts[view.part]);
  at("facts").textContent = facts.join(" · ");
  at("notes").replaceChildren(...view.notes.map((note) => made("li", { textContent: note })));
  at("notes").hidden = !view.notes.length;
}

function showPrediction() {
  const { view } = state;
  const { best } = view;
  const right = view.class === null ? "" : view.class === view.predicted ? " (correct)" : " (incorrect)";
  at("prediction").textContent =
    view.probabilities[best] === null ? "The network's output is not a number." : `${inWords(view)}${right}`;
  showChange();
  showSure();
  at("bars").replaceChildren(
    ...view.classes.map((name, i) => {
      const row = made("li", { className: i === best ? "best" : "" });
      const bar = made("span", { className: "bar", ariaHidden: "true" });
      const inner = made("span");
      inner.style.width = `${100 * (view.probabilities[i] ?? 0)}%`;
      bar.append(inner);
      bar.hidden = isNumber();
      const text = name === view.class ? `${name} (true class)` : name;
      const share = made("span", { className: "number", textContent: asValue(view.probabilities[i]) });
      row.append(made("span", { textContent: text }), share, bar);
      return row;
    }),
  );
}

const isNumber = () => state.model.task === "regression";

/** A probability, or a number that is predicted. */
const asValue = (value) => (isNumber() ? short(value) : percent(value));

/** The predicted class with its probability; or the labels or numbers. */
const inWords = (view) =>
  state.model.task === "classification" ? `${view.predicted}, ${percent(view.probabilities[view.best])}` : view.predicted;

function signedPoints(share) {
  const points = (100 * share).toFixed(1).replace("-0.0", "0.0");
  return points > 0 ? `+${points}` : points.replace("-", "−");
}

/** How the prediction changes without the nodes that were taken away. */
function showChange() {
  const { view } = state;
  const gone = view.without;
  at("change").hidden = at("put-back").hidden = !gone.length;
  if (!gone.length) return;
  const { probabilities: whole, log_odds: odds } = view.whole;
  const before = isNumber() ? 0 : Math.max(0, whole.indexOf(Math.max(...whole)));
  const [from, to] = [whole[before], view.probabilities[before]];
  const points = from === null || to === null || isNumber() ? "" : `${signedPoints(to - from)} points`;
  const by = [points, odds && `log odds ${short(odds[0])} → ${short(odds[1])}`].filter(Boolean).join("; ");
  const names = gone.slice(0, 5).map((node) => view.nodes[node]);
  const listed = names.join(", ") + (gone.length > names.length ? ", …" : "");
  const turned = before === view.best || state.model.task !== "classification" ? "" : `. The prediction is now ${view.predicted}`;
  at("change").textContent =
    `Without node${gone.length === 1 ? "" : "s"} ${listed}: ` +
    `${view.classes[before]} ${asValue(from)} → ${asValue(to)}${by && ` (${by})`}${turned}.`;
}

const UNLIKE = {
  distance: "it is farther from them than 99 % of held-out graphs",
  categories: "it has node categories that they do not have",
  size: "it is smaller or larger than all of them",
};

/** What the model file knows of calibration, sets of classes, the ensemble and the training graphs. */
function showSure() {
  const { sure } = state.view;
  const rows = [];
  if (sure) {
    const calibrated = { none: "not calibrated", temperature: "calibrated (temperature)", isotonic: "calibrated (isotonic)" };
    if (!isNumber()) rows.push(["", `Probabilities: ${calibrated[sure.calibration] ?? sure.calibration}`]);
    if (sure.std !== null) rows.push(["", `± ${asValue(sure.std)} over the ${state.model.members} networks`]);
    const [level, measured] = [`${Math.round(100 * sure.confidence)} %`, `measured on held-out graphs: ${percent(sure.coverage)}`];
    if (sure.set) rows.push(["set", `Set of classes at ${level}: ${sure.set.join(", ")} (${measured})`]);
    for (const [i, [low, high]] of (sure.intervals ?? []).entries()) {
      rows.push(["set", `${state.view.classes[i]} at ${level}: ${short(low)} to ${short(high)} (${measured})`]);
    }
    const unlike = sure.unlike_training;
    if (unlike?.length) rows.push(["unlike", `Unlike the training graphs: ${unlike.map((w) => UNLIKE[w] ?? w).join("; ")}`]);
    else if (unlike) rows.push(["", `Like the training graphs (${percent(sure.distance)} of held-out graphs are nearer)`]);
  }
  at("sure").replaceChildren(...rows.map(([className, textContent]) => made("li", { className, textContent })));
}

// ---- what the prediction rests on ----

function showAttribution() {
  const { view, compared } = state;
  const found = attributionOf();
  const chosen = { view, plan: state.plan, attribution: found, trouble: state.source.trouble };
  const both = compared ? [chosen, compared] : [chosen];
  const largest = Math.max(1e-12, ...both.flatMap((one) => (one.attribution ? [largestOf(one.attribution)] : [])));
  const figures = both.map((one, i) => attributionFigure(one, largest, i === 0));
  const focused = document.activeElement?.id === "attribution";
  at("attributions").replaceChildren(...figures);
  if (focused) at("attribution").focus({ preventScroll: true });
  const unit = unitOf(both);
  at("scale").hidden = !unit;
  const [against, speaksFor] = isNumber() ? ["lowers it", "raises it"] : ["against", "for"];
  at("scale").replaceChildren(`${against} ${signed(-largest)}`, colourScale("page-scale"), `${signed(largest)} ${speaksFor}`);
  at("attributions").classList.toggle("single", !compared);
  at("rests-hint").textContent = !unit
    ? ""
    : isNumber()
      ? `Orange nodes and edges raise the number (${unit}), blue ones with a thick outline lower it.`
      : `Orange nodes and edges speak for the prediction, blue ones with a thick outline against it (${unit}).`;
  if (found) {
    const change = (value) => (value === null ? "–" : value.toFixed(3));
    const head = ["Top nodes", "Change without them", "as many random ones", "Change with them alone", "as many random ones"];
    const rows = found.fidelity.levels.map((one) => [
      `${one.percent} % (${one.nodes})`,
      ...[one.necessity, one.random_necessity, one.sufficiency, one.random_sufficiency].map(change),
    ]);
    fillTable(at("fidelity-table"), [head, ...rows], isNumber() ? "Change of the number" : `Fall of the probability of ${found.target}`);
    const groups = found.groups.map((one) => [one.name, signed(one.attribution), one.nodes.map((n) => view.nodes[n]).join(", ")]);
    fillTable(at("groups-table"), [["Group", "Attribution", "Nodes"], ...groups], "Groups that are removed at once");
  }
  at("more").hidden = !found;
  at("groups-table").hidden = !found?.groups.length;
  at("compare").setAttribute("aria-pressed", compared !== null);
  at("compare").textContent = compared ? "Stop comparing" : "Compare with another graph";
  markNode();
}

/** What the attributions of graphs are measured in. */
function unitOf(graphs) {
  const units = new Set(graphs.flatMap((one) => (one.attribution ? [one.attribution.unit] : [])));
  return units.size > 1 ? "log odds of the prediction of each" : ([...units][0] ?? "");
}

/** How far an attribution is true, and how far the networks of an ensemble agree on it. */
const verdictOf = (attribution) => [attribution.fidelity.sentence, attribution.stability].filter(Boolean).join(" ");

/** One graph with its prediction, attribution and fidelity; nodes of the chosen graph can be taken away. */
function attributionFigure({ view, plan, attribution, trouble }, largest, isChosen) {
  const figure = made("figure", { className: "panel" });
  const caption = made("figcaption");
  caption.append(made("b", { textContent: view.title }), made("span", { textContent: inWords(view) }));
  const picture = made("div", { className: "picture" });
  picture.append(drawAttribution(view, plan, attribution, largest, view.without));
  if (isChosen) {
    Object.assign(picture, { id: "attribution", tabIndex: 0 });
    picture.setAttribute("role", "application");
    picture.setAttribute("aria-roledescription", "graph");
    picture.setAttribute("aria-describedby", "attribution-keys");
    picture.setAttribute("aria-label", "What the prediction rests on");
  } else {
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `What the prediction of ${view.title} rests on`);
  }
  const sentence = attribution ? verdictOf(attribution) : trouble || "Computing …";
  const kind = trouble ? "trouble" : attribution && !attribution.fidelity.beats_chance ? "verdict weak" : "verdict";
  const words = made("p", { className: kind, textContent: sentence });
  if (isChosen) words.id = "fidelity";
  const side = made("div");
  side.append(caption, words);
  figure.append(picture, side);
  return figure;
}

/** Takes a node away, or puts it back. */
function toggle(node) {
  const { without = [] } = state.source;
  const isGone = without.includes(node);
  if (!isGone && without.length + 1 >= state.view.nodes.length) return; // one has to be left
  state.source.without = isGone ? without.filter((other) => other !== node) : [...without, node];
  update();
}

function putBack() {
  state.source.without = [];
  update();
}

function compare() {
  const { view, plan } = state;
  state.compared = state.compared ? null : { view, plan, attribution: attributionOf() };
  showAttribution();
}

function showPanels() {
  const { view, levels } = state;
  const panels = at("panels");
  while (panels.childElementCount > levels.length) panels.lastChild.remove();
  while (panels.childElementCount < levels.length) panels.append(panel(panels.childElementCount));
  levels.forEach((one, number) => {
    const words = `${one.inside.size} nodes, ${one.edges.length} edges`;
    const [caption, picture] = panels.children[number].children;
    caption.replaceChildren(made("b", { textContent: one.name }), made("span", { textContent: words }));
    picture.setAttribute("aria-label", `${one.name}: ${words}`);
    picture.replaceChildren(draw(view, state.plan, one));
  });
  markNode();
}

function enlarge(wanted) {
  at("larger").setAttribute("aria-pressed", wanted);
  at("panels").classList.toggle("large", wanted);
}

function panel(number) {
  const figure = made("figure", { className: "panel" });
  const picture = made("div", { className: "picture", tabIndex: 0 });
  picture.dataset.level = number;
  picture.setAttribute("role", "application");
  picture.setAttribute("aria-roledescription", "graph");
  picture.setAttribute("aria-describedby", "keys");
  figure.append(made("figcaption"), picture);
  return figure;
}

function showLegend() {
  const entries = [...state.plan.legend.map(({ name, fill, count }) => [`${name} (${count})`, fill])];
  if (state.view.layers.length) entries.push(["dropped", null]);
  at("legend").replaceChildren(
    ...entries.map(([name, fill]) => {
      const entry = made("span");
      entry.append(swatch(fill), name);
      return entry;
    }),
  );
  if (!state.view.layers.some((layer) => layer.score.some((score) => score !== null))) return;
  at("legend").append(made("span", { className: "hint", textContent: "Larger nodes have higher scores." }));
}

// ---- a node and its votes ----

function pointAt(picture, event) {
  const svg = picture.querySelector("svg");
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  let [nearest, least] = [null, Math.max(2 * size(state.plan), 9) ** 2];
  state.plan.at.forEach(([x, y], node) => {
    const far = (x - point.x) ** 2 + (y - point.y) ** 2;
    if (far < least) [nearest, least] = [node, far];
  });
  return nearest;
}

/** The card with the scores must not cover the picture whose nodes are clicked. */
function choosePoint(picture, event) {
  const node = pointAt(picture, event);
  if (node !== null) chooseNode(node, false, picture.id !== "attribution");
}

function togglePoint(picture, event) {
  const node = pointAt(picture, event);
  if (node !== null) toggle(node);
}

function chooseNode(node, aloud = false, sticky = true) {
  if (node === state.node && sticky === state.sticky && !aloud) return;
  Object.assign(state, { node, sticky });
  markNode();
  showVotes();
  showNode();
  if (aloud) at("said").textContent = node === null ? "" : nodeInWords(node);
}

function markNode() {
  const own = at("attribution")?.querySelector("svg");
  if (own) mark(own, state.plan, { inside: new Set(state.view.nodes.keys()), share: new Map() }, state.node);
  at("panels")
    .querySelectorAll("svg")
    .forEach((picture, number) => mark(picture, state.plan, state.levels[number], state.node));
}

function nodeName(node) {
  const { view } = state;
  const category = view.features === "attributes" ? "" : `, ${categoryName(view, view.category[node])}`;
  return `Node ${view.nodes[node]}${category}`;
}

function fate(layer, node) {
  const i = layer.nodes.indexOf(node);
  if (state.view.without.includes(node)) return "taken away";
  return i < 0 ? "dropped earlier" : layer.kept[i] ? "kept" : "dropped";
}

function nodeInWords(node) {
  const words = state.view.layers.map((layer, i) => {
    const place = layer.nodes.indexOf(node);
    const outcome = fate(layer, node);
    if (place < 0) return `${outcome === "taken away" ? outcome : "dropped"} before pooling ${i + 1}`;
    const score = layer.score[place];
    const scored = score === null ? "no score" : `score ${short(score)}, rank ${rank(layer.score, place)}`;
    return `pooling ${i + 1}: ${outcome}, ${scored}`;
  });
  return [`${nodeName(node)}.`, attributionInWords(node), words.length ? `${words.join("; ")}.` : ""].join(" ");
}

function attributionInWords(node) {
  const found = attributionOf();
  if (!found) return "";
  const error = found.errors ? ` ± ${short(found.errors[node])}` : "";
  const order = `${ordinal(rank(found.nodes, node))} of ${found.nodes.length}`;
  return `Attribution ${signed(found.nodes[node])}${error} (${order}).`;
}

function showNode() {
  const { node, view } = state;
  at("node-attribution").textContent = node === null ? "" : `${nodeName(node)}. ${attributionInWords(node)}`;
  at("take").hidden = node === null;
  if (node === null) return;
  const isGone = view.without.includes(node);
  at("take").textContent = isGone ? "Put this node back" : "Take this node away";
  at("take").disabled = !isGone && view.without.length + 1 >= view.nodes.length;
}

const ordinal = (n) => n + (["th", "st", "nd", "rd"][Math.floor((n % 100) / 10) === 1 ? 0 : n % 10] ?? "th");
const rank = (values, place) => 1 + values.filter((v) => v > values[place]).length;

function showVotes() {
  const { view, node } = state;
  at("votes-title").textContent = node === null ? "A node" : nodeName(node);
  at("votes").classList.toggle("chosen", node !== null && state.sticky);
  at("no-node").hidden = node === null;
  at("no-votes").hidden = node !== null;
  at("votes-table").hidden = node === null || !view.layers.length;
  if (node === null) return;
  const votes = [...new Set(view.layers.flatMap((layer) => layer.parts)), "score"];
  const title = (name) => name.charAt(0).toUpperCase() + name.slice(1);
  const head = ["Pooling", ...votes.map(title), "Outcome"];
  at("votes-head").replaceChildren(...head.map((word) => made("th", { scope: "col", textContent: word })));
  at("votes-body").replaceChildren(
    ...view.layers.map((layer, i) => {
      const row = made("tr");
      row.append(made("th", { scope: "row", textContent: i + 1 }));
      const place = layer.nodes.indexOf(node);
      for (const key of votes) {
        const value = layer[key]?.[place] ?? null; // null: dropped earlier, or the layer does not tell
        const cell = made("td", { textContent: short(value) });
        if (value !== null) cell.append(made("small", { textContent: ordinal(rank(layer[key], place)) }));
        row.append(cell);
      }
      row.append(made("td", { textContent: fate(layer, node) }));
      return row;
    }),
  );
}

/** The node that an arrow leads to: the nearest that lies in its direction rather than beside it. */
function inDirection(node, dx, dy) {
  const [x, y] = state.plan.at[node];
  let [found, least] = [node, Infinity];
  state.plan.at.forEach(([u, v], other) => {
    const along = (u - x) * dx + (v - y) * dy;
    const across = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
    const cost = along + 2 * across;
    if (along > 1e-6 && across <= 1.5 * along && cost < least) [found, least] = [other, cost];
  });
  return found;
}

function byRank(number) {
  const found = attributionOf();
  if (Number.isNaN(number) && found) return [...found.nodes.keys()].sort((a, b) => found.nodes[b] - found.nodes[a]);
  const layer = state.view.layers[Math.max((number || 0) - 1, 0)];
  if (!layer) return [...state.view.nodes.keys()];
  const order = layer.nodes.map((node, i) => [node, layer.score[i] ?? -Number.MAX_VALUE]); // without a score: last
  return order.sort((a, b) => b[1] - a[1]).map(([node]) => node);
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function pressed(picture, event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const { node } = state;
  const go = (other) => chooseNode(other, true, picture.id !== "attribution");
  if (event.key === "Escape") {
    go(null);
  } else if (picture.id === "attribution" && ["Enter", " ", "Delete"].includes(event.key)) {
    event.preventDefault();
    if (node !== null) toggle(node);
  } else if (event.key in ARROWS || ["Home", "PageDown", "PageUp"].includes(event.key)) {
    event.preventDefault();
    const order = byRank(Number(picture.dataset.level));
    const place = order.indexOf(node);
    if (node === null || event.key === "Home") go(order[0]);
    else if (event.key in ARROWS) go(inDirection(node, ...ARROWS[event.key]));
    else go(order[Math.min(Math.max(place + (event.key === "PageDown" ? 1 : -1), 0), order.length - 1)]);
  }
}

/** The table of all nodes, by attribution where that is known: its head and rows, and the node of each row. */
function allNodes() {
  const { view } = state;
  const found = attributionOf();
  const degree = view.nodes.map(() => 0);
  for (const [u, v] of view.edges) [degree[u], degree[v]] = [degree[u] + 1, degree[v] + 1];
  const head = ["Node", "Category", "Degree", ...(found ? ["Attribution"] : []), ...(found?.errors ? ["Error"] : [])];
  head.push(...view.layers.flatMap((_, i) => [`Score at pooling ${i + 1}`, `Pooling ${i + 1}`]));
  const order = byRank(NaN);
  const listed = new Set(order);
  order.push(...[...view.nodes.keys()].filter((node) => !listed.has(node)));
  const rows = order.map((node) => [
    view.nodes[node],
    categoryName(view, view.category[node]),
    degree[node],
    ...(found ? [found.nodes[node]] : []),
    ...(found?.errors ? [found.errors[node]] : []),
    ...view.layers.flatMap((layer) => [layer.score[layer.nodes.indexOf(node)] ?? null, fate(layer, node)]),
  ]);
  return { head, rows, order };
}

function showAll() {
  const { head, rows, order } = allNodes();
  const text = (value, i) => (i < 3 || typeof value !== "number" ? (value ?? "") : short(value));
  const by = attributionOf() ? "attribution" : "the score at pooling 1";
  const some = rows.length > ROWS ? `The first ${ROWS} of ${rows.length} nodes, sorted` : "Sorted";
  fillTable(at("all-table"), [head, ...rows.slice(0, ROWS).map((row) => row.map(text))], `${some} by ${by}`);
  at("all-table").querySelectorAll("tbody th").forEach((cell, i) => {
    const button = made("button", { type: "button", textContent: cell.textContent });
    button.addEventListener("click", () => chooseNode(order[i], true));
    cell.replaceChildren(button);
  });
}

// ---- downloads ----

const stem = () => state.view.title.replace(/\.\w+$/, "").replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80) || "graph";

/** The attribution of the chosen graph and of the one it is compared with, then what pooling kept. */
function saveSvg() {
  const { view, compared } = state;
  const settings = [
    ...(view.connectivity === null ? [] : [`λ ${view.connectivity}`]),
    ...(view.ratios.length ? [`ratios ${view.ratios.join(", ")}`] : []),
  ].join(", ");
  const found = attributionOf();
  const captions = [`Predicted: ${inWords(view)}. ${settings}`];
  if (view.without.length) captions.push(at("change").textContent);
  if (found) captions.push(`Attribution by ${found.method}. ${verdictOf(found)}`);
  const both = [{ view, plan: state.plan, attribution: found }, ...(compared ? [compared] : [])].filter((one) => one.attribution);
  const largest = Math.max(...both.map((one) => largestOf(one.attribution)));
  const panels = both.map((one) => ({
    name: one.view === view ? "Attribution" : one.view.title,
    words: inWords(one.view),
    height: one.plan.height,
    picture: drawAttribution(one.view, one.plan, one.attribution, largest, one.view.without),
  }));
  for (const one of state.levels) {
    const words = `${one.inside.size} nodes, ${one.edges.length} edges`;
    panels.push({ name: one.name, words, height: state.plan.height, picture: draw(view, state.plan, one) });
  }
  const legend = [...state.plan.legend, ...(view.layers.length ? [{ name: "dropped", fill: "#b4bcc5" }] : [])];
  const scale = both.length ? `${short(-largest)} to ${short(largest)}, ${unitOf(both)}` : "";
  save(`${stem()}.svg`, "image/svg+xml", pictureFile(view.title, captions, panels, legend, scale));
}

function saveCsv() {
  const { head, rows } = allNodes();
  save(`${stem()}.csv`, "text/csv", csv([head, ...rows]));
}

function saveJson() {
  save(`${stem()}.json`, "application/json", JSON.stringify({ ...state.view, attribution: attributionOf() }, null, 1));
}

// ---- the URL: what is shown can be bookmarked ----

function remember() {
  const wanted = new URLSearchParams();
  if (state.source?.number !== undefined) wanted.set("graph", state.source.number);
  if (!isAsTrained()) {
    if (state.connectivity !== null) wanted.set("connectivity", state.connectivity);
    wanted.set("ratios", state.ratios.join(","));
  }
  if (state.source?.without?.length) wanted.set("without", state.source.without.join(","));
  if (state.method !== "surrogate") wanted.set("method", state.method);
  const hash = String(wanted);
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
}

function recall() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const { model } = state;
  const connectivity = wanted.has("connectivity") ? Number(wanted.get("connectivity")) : NaN;
  state.connectivity = model.connectivity !== null && isFinite(connectivity) ? connectivity : model.connectivity;
  const ratios = (wanted.get("ratios") ?? "").split(",").map(Number);
  const good = ratios.length === model.ratios.length && ratios.every((r, i) => r > 0 && (r <= 1 || !isShare(i)));
  state.ratios = good ? ratios : [...model.ratios];
  const method = [...at("method").options].find((option) => option.value === wanted.get("method"));
  state.method = at("method").value = method?.value ?? "surrogate";
  showSliders();
  const number = Number(wanted.get("graph") || NaN);
  const known = Number.isInteger(number) && number >= 0 && number < model.graphs;
  const without = /^\d+(,\d+)*$/.test(wanted.get("without") ?? "") ? wanted.get("without").split(",").map(Number) : [];
  return known ? { number, without } : null;
}

// ---- start ----

function listen() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address says which graph
    at("graph").focus();
  });
  at("by-number").addEventListener("input", search);
  at("filters").addEventListener("input", filter);
  at("filters").addEventListener("keydown", async (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    await searching;
    if (state.matching.length) choose(state.matching[0]);
  });
  at("list").addEventListener("click", (event) => {
    const row = event.target.closest('[role="option"]');
    if (row) choose(Number(row.id.slice("graph-".length)));
  });
  at("list").addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    step(by);
  });
  at("previous").addEventListener("click", () => step(-1));
  at("next").addEventListener("click", () => step(1));
  at("reset").addEventListener("click", reset);
  at("no-node").addEventListener("click", () => chooseNode(null, true));
  at("larger").addEventListener("click", () => enlarge(at("larger").getAttribute("aria-pressed") !== "true"));
  at("file").addEventListener("click", () => (at("file").value = "")); // the same file again counts as a choice
  at("file").addEventListener("change", (event) => chooseFile(event.target.files[0]));
  at("molecule").addEventListener("submit", (event) => {
    event.preventDefault();
    const smiles = at("smiles").value.trim();
    if (smiles) chooseFile(new File([smiles], "molecule.smi"));
  });
  at("save-svg").addEventListener("click", saveSvg);
  at("save-csv").addEventListener("click", saveCsv);
  at("save-json").addEventListener("click", saveJson);
  at("method").addEventListener("change", (event) => {
    state.method = event.target.value;
    remember();
    attribute();
  });
  at("compare").addEventListener("click", compare);
  at("put-back").addEventListener("click", putBack);
  at("take").addEventListener("click", () => toggle(state.node));
  at("all").addEventListener("toggle", () => state.view && at("all").open && showAll());
  const onPicture = (handle) => (event) => {
    const picture = event.target.closest(".picture");
    if (picture) handle(picture, event);
  };
  const onOwn = (handle) => onPicture((picture, event) => picture.id === "attribution" && handle(picture, event));
  for (const [id, wrap] of [
    ["panels", onPicture],
    ["attributions", onOwn],
  ]) {
    at(id).addEventListener("pointermove", wrap(choosePoint));
    at(id).addEventListener("pointerdown", wrap(choosePoint));
    at(id).addEventListener("keydown", wrap(pressed));
  }
  at("attributions").addEventListener("click", onOwn(togglePoint));
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      at("drop").classList.toggle("over", kind === "dragenter" || kind === "dragover");
      if (kind === "drop") chooseFile(event.dataTransfer.files[0]);
    });
  }
  window.addEventListener("hashchange", () => {
    const found = recall();
    if (found) state.source = found;
    markChosen();
    if (state.source) update();
  });
}

/** An accuracy with what it is to be compared with: the share of the largest class. */
function accuracyInWords({ accuracy, accuracy_rules: rules, largest_class: largest }) {
  const words = `${accuracy.map((v) => v.toFixed(1)).join(" ± ")} % (${rules})`;
  if (!largest) return words;
  const [name, share] = largest;
  const verdict = accuracy[0] > share ? "" : ", which the accuracy does not exceed";
  return `${words}; largest class: ${name}, ${share.toFixed(1)} % of the graphs${verdict}`;
}

async function start() {
  for (const id of ["save-svg", "save-csv", "save-json"]) at(id).disabled = true;
  at("steps").hidden = true;
  state.model = await ask("/api/model");
  const { model } = state;
  const fold = model.folds && model.fold !== null ? ` (fold ${model.fold} of ${model.folds})` : "";
  const expected = model.accuracy
    ? `; cross-validation accuracy: ${accuracyInWords(model)}`
    : model.score
      ? `; cross-validation: ${model.score} (${model.accuracy_rules})`
      : "";
  const heads = { classification: "Predicted class", multilabel: "Predicted labels", regression: "Predicted number" };
  at("prediction-title").textContent = heads[model.task];
  for (const id of ["by-class", "by-right"]) at(id).closest("label").hidden = model.task !== "classification";
  const about = `A network trained on ${model.dataset}${fold}; pooling: ${model.pool}${expected}`;
  at("about").textContent = [about, ...model.notes.map((note) => note[0].toUpperCase() + note.slice(1))].join(". ");
  const kinds = { labels: " with a label on each node", attributes: " with numbers on each node" };
  at("own-hint").textContent = model.molecules
    ? "A molecule, or a file with one SMILES (.smi). It is sent to this server only, and is not stored."
    : `GraphML or node-link JSON${kinds[model.features] ?? ""}, up to ${model.largest_upload >> 20} MB and ` +
      `${model.most_nodes.toLocaleString("en")} nodes. The file is sent to this server only, and is not stored.`;
  at("molecule").hidden = !model.molecules;
  if (model.molecules) {
    at("own-title").textContent = "Or enter a molecule of your own";
    at("file").accept = ".smi";
  }
  if (model.named) {
    at("number-words").textContent = model.molecules ? "Number or name" : "Number, file or node";
    at("by-number").inputMode = "text";
  }
  at("chooser").open = at("own").open = matchMedia("(min-width: 62rem)").matches;
  state.connectivity = model.connectivity;
  state.ratios = [...model.ratios];
  at("views").hidden = !model.results;
  if (model.no_layers) at("kept-hint").textContent = `${model.no_layers}.`;
  else if (model.members > 1) at("kept-hint").textContent += ` Shown of the first of ${model.members} networks.`;
  for (const id of ["panels", "larger", "keys"]) at(id).hidden = Boolean(model.no_layers);
  makeSliders();
  const first = recall();
  listen();
  if (!model.graphs) {
    at("missing").textContent = model.missing;
    at("missing").hidden = false;
    at("filters").hidden = at("found").hidden = true;
    at("chooser").open = at("own").open = true;
    at("graph").setAttribute("aria-busy", "false");
    return;
  }
  choose(first?.number ?? 0, first?.without);
  state.graphs = await ask("/api/graphs");
  at("by-class").replaceChildren(
    made("option", { value: "", textContent: "any" }),
    ...state.graphs.classes.flatMap((name, i) => (name === null ? [] : made("option", { value: i, textContent: name }))),
  );
  at("part-label").hidden = !state.graphs.part;
  filter();
  await predictAll();
}

start().catch((error) => say(error.message));
