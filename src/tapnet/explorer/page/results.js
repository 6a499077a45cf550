// The page of results: the table, the verdict, pictures with the code that draws them, and the settings.

import { ask, at, csv, fillTable, made, save } from "/dom.js";

function card({ name, title, code }) {
  const section = made("section", { className: "card" });
  const heading = made("div", { className: "heading" });
  const button = made("button", { type: "button", textContent: "Show the code" });
  const text = made("pre", { id: `code-${name}`, hidden: true, tabIndex: 0 });
  text.append(made("code", { textContent: code }));
  button.setAttribute("aria-controls", text.id);
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", () => {
    text.hidden = !text.hidden;
    button.setAttribute("aria-expanded", !text.hidden);
    button.textContent = text.hidden ? "Show the code" : "Hide the code";
  });
  heading.append(made("h3", { textContent: title }), button);
  const picture = made("img", { src: `/api/results/pictures/${name}`, alt: title, loading: "lazy" });
  section.append(heading, text, picture);
  return section;
}

async function start() {
  const found = await ask("/api/results");
  at("views").hidden = !found.graphs;
  at("about").textContent = found.rules;
  at("title").textContent = found.title;
  document.title = `${found.title} · tapnet explore`;
  at("verdict").textContent = found.verdict;
  at("notes").replaceChildren(...found.notes.map((note) => made("li", { textContent: note })));
  at("notes").hidden = !found.notes.length;
  fillTable(at("table"), found.table);
  at("pictures").replaceChildren(...found.pictures.map(card));
  fillTable(at("settings"), found.settings);
  at("save-csv").disabled = false;
  at("save-csv").addEventListener("click", () => save(`${found.kind}.csv`, "text/csv", csv(found.table)));
  document.querySelector("main").setAttribute("aria-busy", "false");
}

start().catch((error) => {
  at("trouble").textContent = error.message;
  at("trouble").hidden = false;
});
