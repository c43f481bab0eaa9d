// Comparisons that the simulator wrote: the files that `kubenexus web --report` names, in a frame without scripts.

import { el, replace } from "./dom.js";

export function show(main, context) {
  const reports = context.settings.reports ?? [], frame = el("div", { class: "report" });
  const open = (report) => replace(frame, el("iframe", { sandbox: "", src: report.address, title: report.title }));
  replace(main, el("div", { class: "title" }, el("h1", {}, "Simulations"), reports.length > 1
    ? el("select", { "aria-label": "Report", onchange: (event) => open(reports[event.target.selectedIndex]) }, reports.map((each) => el("option", {}, each.title))) : null),
  reports.length ? frame : el("section", { class: "panel" },
    el("p", {}, "Compare two policies on a trace, then show the page here:"),
    el("pre", {}, "kubenexus simulate compare examples/traces --html comparison.html\nkubenexus web --report comparison.html")));
  if (reports.length) open(reports[0]);
  document.documentElement.dataset.ready = "compare";
}
