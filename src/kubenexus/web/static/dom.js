// Elements from text. Every string becomes a text node or an attribute: nothing is ever parsed as markup.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "value" || name === "checked" || name === "disabled") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
}

// A table: columns are {title, cell(row) -> node or text, number?, class?}.
export function table(caption, columns, rows, empty) {
  const head = el("tr", {}, columns.map((c) => el("th", { scope: "col", class: c.number ? "num" : c.class }, c.title)));
  const body = rows.map((row) =>
    el("tr", {}, columns.map((c) => el("td", { class: c.number ? "num" : c.class }, c.cell(row)))));
  const none = el("tr", {}, el("td", { colspan: columns.length, class: "muted" }, empty || "Nothing here."));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", { class: "hidden" }, caption), el("thead", {}, head),
      el("tbody", {}, rows.length ? body : none)));
}

export const chip = (text, kind = "") => el("span", { class: `chip ${kind}` }, text);

// The address of a job's page. Parts are encoded, so that a name cannot become part of the route.
export const jobLink = (namespace, name, kind = "") =>
  `#/job/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}${kind ? `/${encodeURIComponent(kind)}` : ""}`;
export const gangLink = (namespace, name) => `#/gang/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

export function since(time) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000));
  if (!time || Number.isNaN(seconds)) return "–";
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

export const clock = (time) => (time ? new Date(time).toLocaleTimeString([], { hour12: false }) : "–");
export const count = (number) => Number(number).toLocaleString("en");
export const percent = (part, whole) => (whole ? `${Math.round((100 * part) / whole)}%` : "–");
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
