// The cluster as a map, with a legend and the details of a node.

import { get } from "./api.js";
import { count, el, gangLink, jobLink, percent, plural, replace } from "./dom.js";
import { MapView, keyOf } from "./map_view.js";

const EVERY = 5000; // milliseconds between two looks
const LEGEND = 14;

export function totals(map, starts) {
  const found = { gpus: 0, used: 0, broken: 0, cordoned: 0, cpu: 0 };
  for (let i = 0; i < map.names.length; i++) {
    if (map.states[i] & 1) found.cordoned++;
    found.cpu += Math.min(1000, map.cpu[i]);
    if (!map.gpus[i]) continue;
    found.gpus += map.gpus[i];
    for (let j = starts[i]; j < starts[i + 1]; j++) {
      if (map.cells[j] >= 0) found.used++;
      else if (map.cells[j] === -2) found.broken++;
    }
  }
  return found;
}

export function show(main, context) {
  const legend = el("ul", { class: "legend" }), details = el("div", { class: "details", "aria-live": "polite" });
  const stats = el("dl", { class: "stats" }), crumbs = el("nav", { class: "crumbs", "aria-label": "Part of the cluster" });
  const find = el("input", { type: "search", placeholder: "node", "aria-label": "Find a node", autocomplete: "off", spellcheck: "false" });
  const level = el("select", { "aria-label": "Group nodes by" });
  const view = new MapView({
    label: "Map of the cluster. Arrow keys select a node, Enter goes into its zone or rack, Escape back.",
    selected: (node) => replace(details, nodeDetails(view, node)),
    zoomed: () => drawCrumbs(),
  });
  const kinds = ["tenant", "job", "use"].map((by) =>
    el("label", {}, el("input", { type: "radio", name: "by", value: by, checked: by === view.by, onchange: () => colourBy(by) }), by === "use" ? "utilisation" : by));
  const updated = el("span", { class: "muted" });
  replace(main,
    el("h1", { class: "hidden" }, "Cluster"),
    stats,
    el("div", { class: "tools" },
      el("fieldset", { class: "switch" }, el("legend", {}, "Colour by"), kinds),
      el("label", {}, "Group by ", level), find, crumbs, el("span", { class: "grow" }), updated),
    el("div", { class: "split" }, view.box,
      el("aside", { "aria-label": "Legend and node" }, el("h2", {}, "Largest"), legend, el("h2", {}, "Node"), details)));
  replace(details, el("p", { class: "muted" }, "Select a node: click it, or use the arrow keys on the map."));

  function colourBy(by) {
    view.by = by;
    view.marked = null;
    view.count();
    view.draw();
    drawLegend();
  }

  find.addEventListener("input", () => {
    const text = find.value.trim();
    const found = text ? view.map?.names.findIndex((name) => name.includes(text)) : -1;
    if (found >= 0) view.select(found);
  });
  level.addEventListener("change", () => {
    view.inner = view.map.levels.indexOf(level.value);
    view.zoom({ zone: null, rack: null });
  });

  function drawLegend() {
    const shown = view.by === "use" ? useLegend(view) : view.totals.slice(0, LEGEND).filter(([, number]) => number).map(([key, number]) => {
      const swatch = el("i", { class: "swatch" });
      swatch.style.background = view.colour(key);
      const pressed = view.marked === key;
      return el("li", {}, el("button", { type: "button", class: "row", "aria-pressed": pressed ? "true" : "false",
        onclick: () => { view.marked = pressed ? null : key; view.draw(); drawLegend(); } },
      swatch, el("span", { class: "name" }, key || "other namespaces"), el("span", { class: "num" }, count(number))));
    });
    const rest = view.by === "use" ? 0 : view.totals.length - LEGEND;
    replace(legend, shown, rest > 0 ? el("li", { class: "muted" }, `and ${count(rest)} more`) : null);
  }

  function drawCrumbs() {
    const { zone, rack } = view.chosen, { levels, domains } = view.map, parts = [];
    const link = (text, chosen) => el("button", { type: "button", class: "quiet", onclick: () => view.zoom(chosen) }, text);
    if (zone !== null || rack !== null) parts.push(link("all", { zone: null, rack: null }));
    if (zone !== null && zone >= 0) parts.push("›", link(`${levels[view.outer]} ${domains[view.outer][zone]}`, { zone, rack: null }));
    if (rack !== null && rack >= 0) parts.push("›", el("span", {}, `${levels[view.inner]} ${domains[view.inner][rack]}`));
    replace(crumbs, parts);
  }

  function drawStats() {
    const found = totals(view.map, view.starts), nodes = view.map.names.length;
    const tile = (name, value, more) => el("div", {}, el("dt", {}, name), el("dd", {}, value, more ? el("small", {}, more) : null));
    replace(stats,
      tile("Nodes", count(nodes), found.cordoned ? `${count(found.cordoned)} cordoned` : ""),
      tile("GPUs in use", found.gpus ? percent(found.used, found.gpus) : "–", `${count(found.used)} of ${count(found.gpus)}`),
      tile("GPUs free", count(found.gpus - found.used - found.broken), found.broken ? `${count(found.broken)} unhealthy` : ""),
      tile("CPU requested", percent(found.cpu, nodes * 1000), ""),
      tile("Jobs on the map", count(view.map.owners.filter((owner) => owner.name).length), ""));
  }

  async function update() {
    const map = await get("map", { namespace: context.namespace }, context.signal);
    performance.mark("update-start");
    const first = !view.map, tenants = new Set(map.owners.map((owner) => owner.tenant));
    if (first && tenants.size < 2) {
      view.by = "job"; // one colour would show nothing
      kinds[1].querySelector("input").checked = true;
    }
    view.set(map);
    drawStats();
    drawLegend();
    drawCrumbs();
    if (level.options.length !== view.choices.length) replace(level, view.choices.map((name) => el("option", { value: name }, name)));
    if (view.choices.length) level.value = map.levels[view.inner];
    level.disabled = view.choices.length < 2;
    level.parentElement.hidden = !view.choices.length;
    if (view.node !== null && view.node < map.names.length) replace(details, nodeDetails(view, view.node));
    updated.textContent = `as of ${new Date().toLocaleTimeString([], { hour12: false })}`;
    performance.measure("kubenexus-update", "update-start");
    document.documentElement.dataset.ready = "map";
  }
  context.onTheme(() => { view.draw(); drawLegend(); });
  context.onEnd(() => view.close());
  return context.every(EVERY, update);
}

function useLegend(view) {
  const shades = view.colour("") && view.shades.use;
  return ["free", "up to 20%", "up to 40%", "up to 60%", "up to 80%", "full"].map((text, i) => {
    const swatch = el("i", { class: "swatch" });
    swatch.style.background = shades[i];
    return el("li", { class: "row" }, swatch, el("span", { class: "name" }, text));
  });
}

export const ownerLink = (owner) =>
  !owner.name ? el("span", { class: "muted" }, "another namespace")
    : el("a", { href: owner.kind === "gang" ? gangLink(owner.namespace, owner.name) : jobLink(owner.namespace, owner.name, owner.kind === "pod" ? "" : owner.kind) },
      `${owner.namespace}/${owner.name}`);

function nodeDetails(view, node) {
  const { map, starts } = view, holders = new Map();
  let free = 0, broken = 0;
  for (let i = starts[node]; i < starts[node + 1]; i++) {
    const cell = map.cells[i];
    if (cell >= 0) holders.set(cell, (holders.get(cell) || 0) + 1);
    else if (cell === -2) broken++;
    else free++;
  }
  const unit = map.gpus[node] ? "GPU" : "eighth of cpu";
  const units = (number) => (map.gpus[node] ? plural(number, "GPU") : `${count(number)}/8 cpu`);
  const place = map.levels.map((name, i) => [name, map.places[i][node]]).filter(([, code]) => code >= 0)
    .map(([name, code]) => `${name} ${map.domains[map.levels.indexOf(name)][code]}`);
  const state = [map.states[node] & 1 ? "cordoned" : "", map.states[node] & 2 ? "blocked: a pod there cannot be read" : ""].filter(Boolean);
  return [
    el("h3", {}, map.names[node]),
    state.length ? el("p", { class: "warn" }, state.join(", ")) : null,
    el("p", { class: "muted" }, place.join(" › ") || "no topology labels"),
    el("dl", { class: "facts" },
      el("dt", {}, "Cpu"), el("dd", {}, `${(map.cpu[node] / 10).toFixed(0)}%`),
      el("dt", {}, "Memory"), el("dd", {}, `${(map.memory[node] / 10).toFixed(0)}%`),
      el("dt", {}, "Pods"), el("dd", {}, count(map.pods[node])),
      el("dt", {}, map.gpus[node] ? "GPUs" : "Cells"), el("dd", {}, `${units(free)} free${broken ? `, ${broken} unhealthy` : ""}`)),
    holders.size ? el("ul", { class: "plain" }, [...holders].sort((a, b) => b[1] - a[1]).map(([cell, number]) => {
      const swatch = el("i", { class: "swatch" });
      swatch.style.background = view.colour(keyOf(map.owners[cell], view.by));
      return el("li", { class: "row" }, view.by === "use" ? null : swatch, el("span", { class: "name" }, ownerLink(map.owners[cell])), el("span", { class: "num" }, units(number)));
    })) : el("p", { class: "muted" }, `no ${unit} is held`),
  ];
}
