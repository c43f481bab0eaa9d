// Gangs, and where the members of one are in the topology.

import { get } from "./api.js";
import { chip, count, el, gangLink, jobLink, plural, replace, since, table } from "./dom.js";
import { MapView } from "./map_view.js";

const EVERY = 5000;
const KINDS = { Running: "good", Partial: "warn", Pending: "bad", Forming: "warn", Degraded: "bad" };

const places = (gang) => Object.entries(gang.domains).map(([level, names]) => (names.length === 1 ? `${level} ${names[0]}` : `${names.length} ${level}s`)).join(" › ") || "–";

export function list(main, context) {
  const body = el("div"), filter = el("input", { type: "search", placeholder: "filter by name", "aria-label": "Filter", spellcheck: "false" });
  replace(main, el("h1", {}, "Gangs"), el("div", { class: "tools" }, filter), body);
  let gangs = [], next = "";
  function draw() {
    const text = filter.value.trim();
    replace(body, table("Gangs", [
      { title: "Gang", class: "name", cell: (gang) => el("a", { href: gangLink(gang.namespace, gang.name) }, `${gang.namespace}/${gang.name}`) },
      { title: "State", cell: (gang) => chip(gang.state, KINDS[gang.state] ?? "") },
      { title: "Members", number: true, cell: (gang) => count(gang.members) },
      { title: "Min", number: true, cell: (gang) => count(gang.minimum) },
      { title: "Placed", number: true, cell: (gang) => count(gang.placed) },
      { title: "Asks for", cell: (gang) => gang.topology || "–" },
      { title: "Is in", cell: places },
      { title: "Age", number: true, cell: (gang) => since(gang.since) },
      { title: "Why", class: "why", cell: (gang) => gang.why || "–" },
    ], gangs.filter((gang) => `${gang.namespace}/${gang.name}`.includes(text)), "There are no gangs."),
    next ? el("p", { class: "muted" }, "Only the first 500 gangs are shown; choose a namespace.") : null);
  }
  filter.addEventListener("input", draw);
  return context.every(EVERY, async () => {
    const page = await get("gangs", { namespace: context.namespace, limit: 500 }, context.signal);
    performance.mark("update-start");
    [gangs, next] = [page.items, page.next];
    draw();
    performance.measure("kubenexus-update", "update-start");
    document.documentElement.dataset.ready = "gangs";
  });
}

export function one(main, context, [namespace, name]) {
  const facts = el("div", { class: "columns" }), tree = el("section", { class: "panel" }), note = el("span", { class: "muted" }), whole = el("span");
  const view = new MapView({ label: `Nodes of gang ${name} in the topology`, selected: (node) => { note.textContent = view.map.names[node]; }, zoomed: () => {} });
  view.by = "job";
  replace(main, el("div", { class: "title" }, el("h1", {}, `Gang ${namespace}/${name}`), el("span", { class: "grow" }),
    el("a", { class: "button", href: jobLink(namespace, name, "gang") }, "Why is it there, or not?")),
  facts, el("div", { class: "split low" }, el("div", {}, view.box, el("div", { class: "tools" }, whole, note)), tree));
  context.onEnd(() => view.close());
  context.onTheme(() => view.draw());
  return context.every(EVERY, async () => {
    const page = await get("gangs", { namespace, name }, context.signal);
    const gang = page.items[0];
    if (!gang) {
      replace(facts, el("p", { class: "note" }, "There is no such gang."));
      document.documentElement.dataset.ready = "gang";
      return;
    }
    let map = null;
    try {
      map = await get("map", { namespace: context.namespace }, context.signal);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      note.textContent = `Without a map: ${error.message}`;
    }
    performance.mark("update-start");
    replace(facts, about(gang));
    if (map) {
      const nodes = new Set(Object.values(gang.nodes));
      view.markedNodes = new Set(map.names.map((node, i) => (nodes.has(node) ? i : -1)).filter((i) => i >= 0));
      const zone = commonZone(map, view.markedNodes);
      if (!view.map && zone !== null) view.chosen = { zone, rack: null };
      view.set(map);
      replace(whole, view.chosen.zone === null ? null : el("button", { type: "button", onclick: () => { view.zoom({ zone: null, rack: null }); replace(whole); } }, "Show the whole cluster"));
      replace(tree, branches(gang, map));
    } else replace(tree, branches(gang, null));
    performance.measure("kubenexus-update", "update-start");
    document.documentElement.dataset.ready = "gang";
  });
}

// Returns the code of the zone that all these nodes are in, null if they are in several.
function commonZone(map, nodes) {
  const level = map.levels.indexOf("zone");
  const codes = new Set([...nodes].map((node) => (level < 0 ? -1 : map.places[level][node])));
  const [code] = codes;
  return codes.size === 1 && code >= 0 ? code : null;
}

function about(gang) {
  const fact = (title, ...value) => [el("dt", {}, title), el("dd", {}, ...value)];
  return [
    el("section", { class: "panel" }, el("h2", {}, "Facts"), el("dl", { class: "facts" },
      fact("State", chip(gang.state, KINDS[gang.state] ?? "")), fact("Members", `${count(gang.placed)} of ${count(gang.members)} placed, at least ${count(gang.minimum)} together`),
      fact("Asks for", gang.topology || "no topology"), fact("Is in", places(gang)), fact("Priority", count(gang.priority)), fact("Age", since(gang.since)))),
    gang.why ? el("section", { class: "panel wide" }, el("h2", {}, "Why it waits"), el("p", { class: "lead" }, gang.why)) : null,
  ];
}

// Zones, racks and nodes as nested lists, with the members on each node.
function branches(gang, map) {
  const byNode = new Map();
  for (const [pod, node] of Object.entries(gang.nodes)) byNode.set(node, [...(byNode.get(node) ?? []), pod]);
  const waiting = byNode.get("") ?? [];
  byNode.delete("");
  const index = map ? new Map(map.names.map((node, i) => [node, i])) : new Map(), root = new Map();
  for (const [node, pods] of [...byNode].sort()) {
    const i = index.get(node), path = i === undefined ? [] : map.levels.map((level, l) => [level, map.places[l][i]]).filter(([, code]) => code >= 0)
      .map(([level, code]) => `${level} ${map.domains[map.levels.indexOf(level)][code]}`);
    let here = root;
    for (const step of path) here = here.get(step) ?? here.set(step, new Map()).get(step);
    here.set(node, pods);
  }
  const nested = (branch) => el("ul", { class: "tree" }, [...branch].map(([title, inside]) => (inside instanceof Map
    ? el("li", {}, el("strong", {}, title), nested(inside))
    : el("li", {}, el("span", { class: "name" }, title), el("span", { class: "muted" }, ` ${plural(inside.length, "member")}: ${inside.slice(0, 6).map((pod) => pod.split("/")[1]).join(", ")}${inside.length > 6 ? "…" : ""}`)))));
  return [
    el("h2", {}, "Members in the topology"), root.size ? nested(root) : el("p", { class: "muted" }, "No member has a node."),
    waiting.length ? el("p", {}, `${plural(waiting.length, "member")} without a node: ${waiting.slice(0, 12).map((pod) => pod.split("/")[1]).join(", ")}${waiting.length > 12 ? "…" : ""}`) : null,
  ];
}
