// The frame of the page: routes, the namespace, the theme, and what is wrong.

import { ApiProblem, setToken, settings } from "./api.js";
import { el, replace } from "./dom.js";
import * as compare from "./compare_page.js";
import * as decisions from "./decisions_page.js";
import * as gangs from "./gangs_page.js";
import * as job from "./job_page.js";
import * as map from "./map_page.js";
import * as queue from "./queue_page.js";
import * as whatif from "./whatif_page.js";

const PAGES = [
  ["map", "Cluster", map.show], ["queue", "Queue", queue.show], ["gangs", "Gangs", gangs.list], ["decisions", "Decisions", decisions.show],
  ["whatif", "What if", whatif.show], ["compare", "Simulations", compare.show], ["job", "", job.show], ["gang", "", gangs.one],
];
const THEMES = ["auto", "light", "dark"];
const byId = (id) => document.getElementById(id);
const main = byId("main"), notice = byId("notice"), space = byId("namespace"), theme = byId("theme");
let told = null, ending = null;

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.textContent = `Theme: ${name}`;
  try {
    localStorage.setItem("kubenexus-theme", name);
  } catch {
    // private mode: the theme lasts for this page
  }
}

function problem(error) {
  if (error?.name === "AbortError") return;
  if (error instanceof ApiProblem && error.status === 401) return askToken(error.message);
  const scoped = error instanceof ApiProblem && error.status === 403 && !space.value;
  notice.textContent = scoped ? `${error.message}. Choose a namespace whose pods you may list.` : error?.message ?? String(error);
  notice.hidden = false;
  document.documentElement.dataset.ready = "problem";
}

function askToken(message) {
  if (told && !told.asksToken) {
    replace(main, el("h1", {}, "No access"), el("p", { class: "note" }, message));
    return;
  }
  const token = el("input", { id: "token", type: "password", autocomplete: "off", required: true });
  replace(main, el("h1", {}, "Sign in"), el("form", { class: "panel form narrow", onsubmit: (event) => {
    event.preventDefault();
    setToken(token.value.trim());
    begin();
  } }, el("label", { for: "token" }, "A bearer token, such as that of ", el("code", {}, "kubectl create token NAME")), token,
  el("button", { type: "submit", class: "primary" }, "Use it in this tab"), el("p", { class: "muted" }, message)));
  document.documentElement.dataset.ready = "token";
}

function navigate() {
  ending?.abort();
  const controller = new AbortController(), { signal } = controller, themed = [];
  ending = controller;
  notice.hidden = true;
  delete document.documentElement.dataset.ready;
  const [name, ...rest] = location.hash.replace(/^#\//, "").split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return "";
    }
  });
  const page = PAGES.find(([path]) => path === name) ?? PAGES[0];
  for (const link of byId("nav").children) {
    if (link.dataset.page === page[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page[1] || rest.slice(0, 2).join("/")} – KubeNexus`;
  const context = {
    signal, settings: told, namespace: space.value.trim(), problem,
    onTheme: (call) => themed.push(call),
    onEnd: (call) => signal.addEventListener("abort", call),
    spaces: (names) => replace(byId("namespaces"), [...new Set(names)].sort().map((each) => el("option", { value: each }))),
    // Calls update now and again after `wait`, while the page is visible. An error does not end it.
    every: async (wait, update) => {
      while (!signal.aborted) {
        if (!document.hidden || !document.documentElement.dataset.ready) {
          try {
            await update();
            if (!signal.aborted) notice.hidden = true;
          } catch (error) {
            if (!signal.aborted) problem(error);
            if (error.status === 401) return;
          }
        }
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    },
  };
  document.documentElement.ontheme = () => themed.forEach((call) => call());
  Promise.resolve(page[2](main, context, rest)).catch((error) => { if (!signal.aborted) problem(error); });
}

async function begin() {
  try {
    told = await settings();
  } catch (error) {
    problem(error);
    return;
  }
  const live = told.source === "scheduler";
  replace(byId("source"), el("i", { class: live ? "dot live" : "dot" }), live ? "live scheduler" : told.source === "file" ? `file ${told.title}` : `cluster ${told.title}`);
  if (!space.value && sessionStorage.getItem("kubenexus-namespace")) space.value = sessionStorage.getItem("kubenexus-namespace");
  navigate();
}

replace(byId("nav"), PAGES.filter(([, title]) => title).map(([path, title]) => el("a", { href: `#/${path}`, "data-page": path }, title)));
setTheme(THEMES.includes(localStorage.getItem("kubenexus-theme")) ? localStorage.getItem("kubenexus-theme") : "auto");
theme.addEventListener("click", () => {
  setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % THEMES.length]);
  document.documentElement.ontheme?.();
});
space.addEventListener("change", () => {
  sessionStorage.setItem("kubenexus-namespace", space.value.trim());
  navigate();
});
addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  navigate();
  main.focus({ preventScroll: true });
});
begin();
