// The jobs that wait, and why.

import { get } from "./api.js";
import { chip, count, el, jobLink, replace, since, table } from "./dom.js";

const EVERY = 5000;
const LIMIT = 200;
const KINDS = { active: "good", backoff: "", unschedulable: "bad", gated: "warn", "in flight": "good", waiting: "" };

export const bare = (job) => (job.name.startsWith(`${job.namespace}/`) ? job.name.slice(job.namespace.length + 1) : job.name);

export function show(main, context) {
  const filter = el("input", { type: "search", placeholder: "filter by name or reason", "aria-label": "Filter", spellcheck: "false" });
  const body = el("div"), spaces = el("div"), more = el("div", { class: "tools" }), state = el("select", { "aria-label": "State" },
    ["any state", ...Object.keys(KINDS)].map((name) => el("option", { value: name === "any state" ? "" : name }, name)));
  replace(main, el("h1", {}, "Queue"), el("div", { class: "tools" }, filter, state, more), spaces, body);
  let jobs = [], next = "", pages = 1;

  function draw() {
    const text = filter.value.trim().toLowerCase();
    const shown = jobs.filter((job) => (!state.value || job.state === state.value) && (!text || `${job.name} ${job.why}`.toLowerCase().includes(text)));
    replace(body, table("Jobs that wait", [
      { title: "Job", class: "name", cell: (job) => el("a", { href: jobLink(job.namespace, bare(job), job.gang ? "gang" : "") }, job.name) },
      { title: "State", cell: (job) => chip(job.state, KINDS[job.state] ?? "") },
      { title: "Priority", number: true, cell: (job) => count(job.priority) },
      { title: "Pods", number: true, cell: (job) => (job.gang ? `${job.pods} (min ${job.minimum})` : String(job.pods)) },
      { title: "Tries", number: true, cell: (job) => count(job.attempts) },
      { title: "Waits", number: true, cell: (job) => since(job.since) },
      ...(jobs.some((job) => job.eta) ? [{ title: "Starts", cell: (job) => job.eta || "–" }] : []),
      { title: "Why", class: "why", cell: (job) => job.why || el("a", { href: jobLink(job.namespace, bare(job), job.gang ? "gang" : "") }, "ask why") },
    ], shown, jobs.length ? "No job matches." : "No job waits."));
    replace(more, el("span", { class: "muted" }, `${count(shown.length)} of ${count(jobs.length)}${next ? "+" : ""} jobs`),
      next ? el("button", { type: "button", onclick: () => { pages++; update().catch(context.problem); } }, "Show more") : null);
  }

  async function update() {
    const found = [];
    next = "";
    for (let i = 0; i < pages; i++) {
      const page = await get("jobs", { namespace: context.namespace, limit: LIMIT, continue: next }, context.signal);
      found.push(...page.items);
      next = page.next;
      if (!next) break;
    }
    const queues = (await get("queues", { namespace: context.namespace, limit: 100 }, context.signal)).items;
    performance.mark("update-start");
    jobs = found;
    context.spaces(queues.map((each) => each.namespace));
    replace(spaces, queues.length > 1 || queues.some((each) => each.queue) ? spaceTable(queues) : null);
    draw();
    performance.measure("kubenexus-update", "update-start");
    document.documentElement.dataset.ready = "queue";
  }
  filter.addEventListener("input", draw);
  state.addEventListener("change", draw);
  return context.every(EVERY, update);
}

function spaceTable(queues) {
  const column = (title, name) => ({ title, number: true, cell: (row) => (row[name] ? count(row[name]) : "–") });
  return el("details", { class: "panel" }, el("summary", {}, `By namespace (${count(queues.length)})`), table("Jobs by namespace", [
    { title: "Namespace", class: "name", cell: (row) => row.namespace },
    { title: "Queue", cell: (row) => row.queue || "–" },
    { title: "Tenant", cell: (row) => row.tenant },
    { title: "Tier", cell: (row) => row.tier },
    column("Pods", "pods"), column("Active", "active"), column("Backoff", "backoff"), column("Unschedulable", "unschedulable"),
    column("Gated", "gated"), column("In flight", "inFlight"),
  ], queues));
}
