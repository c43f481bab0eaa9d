// One job: why it waits, what would make it start at once, or why it goes where it goes.

import { get } from "./api.js";
import { chip, count, el, gangLink, plural, replace, table } from "./dom.js";

const KINDS = {
  node: "use a node", topology: "topology", constraint: "drop a constraint", toleration: "tolerate", minimum: "fewer members",
  priority: "priority", capacity: "more capacity", new_nodes: "new nodes",
};

export async function show(main, context, [namespace, name, kind = ""]) {
  const title = el("h1", {}, `${namespace}/${name}`);
  replace(main, title, el("p", { class: "note" }, "Deciding on a copy of the cluster…"));
  let found;
  try {
    found = await get("explain", { namespace, name, kind, nodes: 10 }, context.signal);
  } finally {
    document.documentElement.dataset.ready = "job";
  }
  performance.mark("update-start");
  const all = found.explanation, decision = all?.decision, waits = !found.placed && !found.bound;
  const verdict = found.bound ? chip(`on node ${all?.bound || ""}`, "good") : found.placed ? chip("would be placed now", "good") : chip("waits", "bad");
  replace(main,
    el("div", { class: "title" }, title, verdict, found.pod !== `${namespace}/${name}` ? el("span", { class: "muted" }, `explained by pod ${found.pod}`) : null,
      el("span", { class: "grow" }), el("button", { type: "button", onclick: () => show(main, context, [namespace, name, kind]).catch(context.problem) }, "Ask again")),
    el("div", { class: "columns" },
      el("section", { class: "panel wide" }, el("h2", {}, waits ? "Why" : "Decision"), el("p", { class: "lead" }, found.message || "It would be placed."), certificate(decision)),
      all ? facts(all, namespace) : null),
    waits ? suggestions(found.starts_if) : null,
    all?.evictions ? evictions(all.evictions) : null,
    all && decision?.placements?.length ? placements(decision) : null,
    all?.best?.length ? ratings(all.best) : null,
    all ? notes(all) : el("p", { class: "note" }, "You may not list nodes, so nodes are not named here."));
  performance.measure("kubenexus-update", "update-start");
}

function certificate(decision) {
  const closest = decision?.certificate, counts = decision?.diagnosis?.counts ?? [];
  const lines = counts.length ? counts : closest?.refused_nodes ?? [], most = Math.max(1, ...lines.map(([, number]) => number));
  return [
    closest?.domain ? el("p", {}, `Closest is ${closest.level} ${closest.domain}: ${closest.fit} of ${closest.needed} members fit.`) : null,
    lines.length ? el("ul", { class: "bars" }, lines.map(([reason, number]) => {
      const bar = el("i", { class: "fill" });
      bar.style.width = `${Math.max(2, (100 * number) / most)}%`;
      return el("li", {}, el("span", { class: "num" }, plural(number, "node")), el("span", { class: "track" }, bar), el("span", {}, reason));
    })) : null,
  ];
}

function facts(all, namespace) {
  const gang = all.gang, rows = [];
  const add = (name, ...value) => rows.push(el("dt", {}, name), el("dd", {}, ...value));
  if (gang) {
    const own = gang.name.startsWith(`${namespace}/`) ? gang.name.slice(namespace.length + 1) : gang.name;
    add("Gang", el("a", { href: gangLink(namespace, own) }, gang.name));
    add("Members", `${count(gang.waiting)} wait, ${count(gang.bound)} bound, at least ${count(gang.minimum)} together`);
    if (gang.held) add("Held", gang.held);
  }
  if (all.tenant) add("Tenant", `${all.tenant.name}, ${all.tenant.tier} (${all.tenant.source})`);
  if (all.workload) add("Kind of work", `${all.workload.type} (${all.workload.reason})${all.workload.preemptible ? ", preemptible" : ""}`);
  if (all.devices) add("Devices", all.devices.need);
  if (all.bound) add("Node", all.bound);
  if (all.bound_cards) add("Cards", all.bound_cards);
  return rows.length ? el("section", { class: "panel" }, el("h2", {}, "Facts"), el("dl", { class: "facts" }, rows)) : null;
}

function suggestions(found) {
  const list = found?.suggestions ?? [];
  return el("section", { class: "panel starts" }, el("h2", {}, "Starts at once if"),
    list.length ? el("ol", {}, list.map((each) => el("li", {}, chip(KINDS[each.kind] ?? each.kind, "kind"), el("span", {}, each.text)))) :
      el("p", { class: "muted" }, found ? "No single change was found that would do." : "It is not tried yet, so nothing was computed."),
    found ? el("p", { class: "muted" }, `Each line alone is enough; verified by ${plural(found.decisions, "decision")} on a copy of the cluster${found.complete ? "." : "; not everything was tried."}`) : null);
}

function evictions(found) {
  const others = found.others ? `${plural(found.others, "pod")} of other namespaces` : "";
  return el("section", { class: "panel" }, el("h2", {}, "Has to go first"),
    el("ul", { class: "plain" }, [...found.own, others].filter(Boolean).slice(0, 50).map((each) => el("li", {}, each))),
    found.nodes.length ? el("p", { class: "muted" }, `Then it goes to ${found.nodes.slice(0, 8).join(", ")}.`) : null);
}

function placements(decision) {
  return el("section", { class: "panel" }, el("h2", {}, "Where it goes"), table("Pods and nodes", [
    { title: "Pod", class: "name", cell: (row) => row.pod }, { title: "Node", class: "name", cell: (row) => row.node },
    { title: "Points", number: true, cell: (row) => count(row.total) },
    { title: "Runner-up", cell: (row) => (row.runner_up ? `${row.runner_up.node} (${count(row.runner_up.total)})` : "none") },
    { title: "Feasible nodes", number: true, cell: (row) => count(row.feasible) },
  ], decision.placements.slice(0, 200)));
}

function ratings(best) {
  const plugins = [...new Set(best.flatMap((each) => each.scores.map((score) => score.plugin)))].slice(0, 14);
  const points = (row, plugin) => row.scores.find((score) => score.plugin === plugin);
  return el("section", { class: "panel" }, el("h2", {}, "Best nodes, and the points of each plugin"), table("Best nodes", [
    { title: "Node", class: "name", cell: (row) => row.node }, { title: "Total", number: true, cell: (row) => count(row.total) },
    ...plugins.map((plugin) => ({ title: plugin, number: true, cell: (row) => { const score = points(row, plugin); return score ? count(score.weight * score.normalized) : "–"; } })),
  ], best));
}

function notes(all) {
  const lines = [...(all.claims ?? []), ...(all.unclear ?? [])];
  const near = all.devices?.nearest ?? [];
  return [
    near.length ? el("section", { class: "panel" }, el("h2", {}, "Nearest nodes by their devices"), table("Nearest nodes", [
      { title: "Node", class: "name", cell: (row) => row.node }, { title: "Devices", cell: (row) => row.text },
      { title: "Refused for", cell: (row) => row.refused || (row.enough ? "–" : "not enough") }], near)) : null,
    lines.length ? el("section", { class: "panel" }, el("h2", {}, "Unclear"), el("ul", {}, lines.map((each) => el("li", {}, each)))) : null,
  ];
}
