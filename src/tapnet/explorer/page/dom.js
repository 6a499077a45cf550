// What every page needs: elements, requests, numbers as text, downloads.

export const at = (id) => document.getElementById(id);

export function made(name, properties = {}) {
  return Object.assign(document.createElement(name), properties);
}

export async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The server does not respond. Is `tapnet explore` still running?");
  }
  const values = await answer.json().catch(() => ({ error: `The server responded with status ${answer.status}.` }));
  if (!answer.ok) throw new Error(values.error);
  return values;
}

/** Fills a table: the first row is its head, and the first cell of each row names it. */
export function fillTable(table, [head, ...rows], caption = "") {
  const cell = (name, scope) => (text) => made(name, { textContent: text, ...(scope && { scope }) });
  const row = (cells, first, other) => {
    const line = made("tr");
    line.append(first(cells[0]), ...cells.slice(1).map(other));
    return line;
  };
  const [top, body] = [made("thead"), made("tbody")];
  top.append(row(head, cell("th", "col"), cell("th", "col")));
  body.append(...rows.map((cells) => row(cells, cell("th", "row"), cell("td"))));
  const words = caption ? [made("caption", { className: "hint", textContent: caption })] : [];
  table.replaceChildren(...words, top, body);
}

export function save(name, kind, text) {
  const link = made("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Rows as CSV, by RFC 4180. */
export function csv(rows) {
  const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return rows.map((row) => row.map((value) => cell(String(value ?? ""))).join(",") + "\r\n").join("");
}

export const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);

export function short(value) {
  if (value === null) return "–";
  return value === 0 || Math.abs(value) >= 0.001 ? value.toPrecision(3) : value.toExponential(1);
}

export const signed = (value) => (value > 0 ? "+" : "") + short(value).replace("-", "−");
