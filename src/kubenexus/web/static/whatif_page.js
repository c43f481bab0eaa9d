// What would become of a manifest, or of what waits on a changed cluster. Nothing is submitted.

import { post } from "./api.js";
import { chip, count, el, plural, replace, table } from "./dom.js";

const EXAMPLE = `apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  parallelism: 4
  completions: 4
  template:
    spec:
      schedulerName: kubenexus-scheduler
      restartPolicy: Never
      containers:
      - name: main
        image: train:1
        resources:
          requests: {cpu: "8", memory: 32Gi}
          limits: {nvidia.com/gpu: 8}
`;
const MOST = 1 << 20; // bytes that the server accepts
let kept = { manifest: EXAMPLE };

export function show(main, context) {
  const manifest = el("textarea", { id: "manifest", rows: "20", spellcheck: "false", autocomplete: "off" });
  manifest.value = kept.manifest;
  const field = (name, label, hint) => [el("label", { for: name }, label), el("input", { id: name, placeholder: hint, autocomplete: "off", spellcheck: "false", value: kept[name] ?? "" })];
  const answer = el("section", { class: "panel", "aria-live": "polite" }, el("h2", {}, "Answer"), el("p", { class: "muted" }, "Nothing is submitted: the scheduler decides on a copy of the cluster."));
  const send = el("button", { type: "submit", class: "primary" }, "What if?");
  const form = el("form", { class: "panel form" }, el("label", { for: "manifest" }, "Manifest (YAML or JSON; empty: the pods that wait)"), manifest,
    el("div", { class: "pair" }, field("space", "Namespace of objects without one", context.namespace || context.settings.namespace || "default")),
    el("div", { class: "pair" }, field("add", "Add nodes like", "gpu-1=2"), field("remove", "Remove nodes", "gpu-3 gpu-4"),
      field("cordon", "Cordon", "gpu-5"), field("uncordon", "Uncordon", "gpu-7")), send);
  replace(main, el("h1", {}, "What if"), el("div", { class: "columns even" }, form, answer));
  document.documentElement.dataset.ready = "whatif";

  const words = (id) => form.querySelector(`#${id}`).value.split(/[\s,]+/).filter(Boolean);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    kept = { manifest: manifest.value };
    for (const id of ["space", "add", "remove", "cordon", "uncordon"]) kept[id] = form.querySelector(`#${id}`).value;
    const wanted = { manifest: manifest.value.trim() ? manifest.value : "", addNodes: {}, removeNodes: words("remove"), cordon: words("cordon"), uncordon: words("uncordon") };
    for (const each of words("add")) {
      const [name, number = "1"] = each.split("=");
      wanted.addNodes[name] = Number(number) || 1;
    }
    if (new Blob([JSON.stringify(wanted)]).size > MOST) {
      replace(answer, el("h2", {}, "Answer"), el("p", { class: "warn" }, "The manifest is larger than 1 MiB."));
      return;
    }
    send.disabled = true;
    replace(answer, el("h2", {}, "Answer"), el("p", { class: "muted" }, "Deciding on a copy of the cluster…"));
    try {
      const namespace = kept.space || context.namespace || context.settings.namespace || "default";
      draw(answer, await post("whatif", { namespace }, wanted, context.signal));
    } catch (error) {
      if (error.name !== "AbortError") replace(answer, el("h2", {}, "Answer"), el("p", { class: "warn" }, error.message));
    } finally {
      send.disabled = false;
    }
  });
}

function draw(answer, found) {
  const starts = found.jobs.filter((job) => Object.keys(job.nodes).length === job.pods).length;
  replace(answer, el("h2", {}, "Answer"),
    el("p", { class: "lead" }, `${count(starts)} of ${plural(found.jobs.length, "job")} would start at once.`),
    found.hidden_jobs ? el("p", { class: "muted" }, `${plural(found.hidden_jobs, "job")} of other namespaces not shown.`) : null,
    found.hidden_evictions ? el("p", { class: "warn" }, `${plural(found.hidden_evictions, "pod")} of other namespaces would be evicted.`) : null,
    found.jobs.slice(0, 100).map((job) => {
      const nodes = Object.entries(job.nodes), later = Object.entries(job.then_on);
      return el("article", { class: "outcome" }, el("h3", {}, job.job, " ", nodes.length === job.pods ? chip("starts", "good") : nodes.length ? chip(`${nodes.length} of ${job.pods} start`, "warn") : chip("waits", "bad")),
        job.why ? el("p", {}, job.why) : null,
        job.evicts.length ? el("p", { class: "warn" }, `Evicts ${job.evicts.slice(0, 20).join(", ")}${job.evicts.length > 20 ? "…" : ""}`) : null,
        nodes.length || later.length ? table(`Pods of ${job.job}`, [{ title: "Pod", class: "name", cell: ([pod]) => pod }, { title: nodes.length ? "Node" : "Node, once they are gone", class: "name", cell: ([, node]) => node }], (nodes.length ? nodes : later).slice(0, 200)) : null);
    }),
    found.jobs.length > 100 ? el("p", { class: "muted" }, `and ${count(found.jobs.length - 100)} more`) : null);
}
