// Decisions as they happen.

import { follow, get } from "./api.js";
import { chip, clock, count, el, jobLink, replace } from "./dom.js";

const KEPT = 300;
const KINDS = { placed: "good", waits: "warn", error: "bad" };

export async function show(main, context) {
  const rows = el("tbody"), state = el("span", { class: "muted", role: "status" }), pause = el("button", { type: "button", "aria-pressed": "false" }, "Pause");
  const only = el("select", { "aria-label": "Outcome" }, ["all outcomes", "placed", "waits", "error"].map((name) => el("option", { value: name === "all outcomes" ? "" : name }, name)));
  let paused = false, number = 0;
  const held = [];
  replace(main, el("h1", {}, "Decisions"), el("div", { class: "tools" }, only, pause, state),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Decisions" }, el("table", { class: "stream" },
      el("caption", { class: "hidden" }, "Decisions, the newest first"),
      el("thead", {}, el("tr", {}, ["#", "Time", "Outcome", "Job", "What"].map((title) => el("th", { scope: "col" }, title)))), rows)));
  if (context.settings.source !== "scheduler") {
    replace(rows, el("tr", {}, el("td", { colspan: 5, class: "muted" }, "There is no scheduler behind this page: forward its port and start `kubenexus web --scheduler`.")));
    document.documentElement.dataset.ready = "decisions";
    return;
  }

  function line(each) {
    const bare = each.job.startsWith(`${each.namespace}/`) ? each.job.slice(each.namespace.length + 1) : each.job;
    const nodes = Object.entries(each.nodes), evicts = each.evicts.length + each.evictsOthers;
    const said = each.outcome === "placed" ? nodes.slice(0, 4).map(([pod, node]) => `${pod.split("/")[1]} → ${node}`).join(", ") + (nodes.length > 4 ? ` and ${count(nodes.length - 4)} more` : "") : each.message;
    const row = el("tr", {}, el("td", { class: "num" }, count(each.number)), el("td", {}, clock(each.time)), el("td", {}, chip(each.outcome, KINDS[each.outcome] ?? "")),
      el("td", { class: "name" }, el("a", { href: jobLink(each.namespace, bare) }, each.job)),
      el("td", { class: "why" }, said, evicts ? chip(`${count(evicts)} evicted`, "warn") : null));
    row.hidden = Boolean(only.value) && only.value !== each.outcome;
    row.dataset.outcome = each.outcome;
    return row;
  }

  let due = false;
  function add(each) {
    number = Math.max(number, each.number);
    held.push(each);
    if (held.length > KEPT) held.shift();
    if (paused || due) return;
    due = true;
    requestAnimationFrame(() => { due = false; flush(); });
  }

  // All that came since the last frame goes into the table at once.
  function flush() {
    performance.mark("update-start");
    rows.prepend(...held.splice(0).reverse().map(line));
    while (rows.childElementCount > KEPT) rows.lastElementChild.remove();
    performance.measure("kubenexus-update", "update-start");
  }
  only.addEventListener("change", () => { for (const row of rows.children) row.hidden = Boolean(only.value) && only.value !== row.dataset.outcome; });
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (!paused) flush();
  });

  let page, after = "";
  do {
    page = await get("decisions", { namespace: context.namespace, limit: 500, continue: after }, context.signal);
    page.items.forEach(add);
    after = page.next;
  } while (after);
  document.documentElement.dataset.ready = "decisions";
  await follow("decisions", { namespace: context.namespace, follow: "1", continue: number || "" }, context.signal, add,
    (text) => { state.textContent = text === "live" ? "live" : `not connected: ${text}`; });
}
