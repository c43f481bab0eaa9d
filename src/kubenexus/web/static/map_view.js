// The map on a canvas: nodes in racks in zones, and a cell for each GPU (or eighth of the cpu).

import { el } from "./dom.js";
import { at, groups, layout } from "./map_layout.js";
import { assign, colourOf, palette } from "./map_colors.js";

const CELLS_FROM = 7; // pixels of a node from which its cells are drawn one by one

export function offsets(map) {
  const found = new Int32Array(map.names.length + 1);
  for (let i = 0; i < map.names.length; i++) found[i + 1] = found[i] + (map.gpus[i] || 8);
  return found;
}

// By which name an owner is coloured.
export function keyOf(owner, by) {
  if (!owner.name && !owner.namespace) return "";
  return by === "tenant" ? owner.tenant || owner.namespace : `${owner.namespace}/${owner.name}`;
}

export class MapView {
  // `selected(node)` and `zoomed(chosen)` are called when the reader moves.
  constructor({ selected, zoomed, label }) {
    this.canvas = el("canvas", { class: "map", tabindex: "0", role: "img", "aria-label": label });
    this.box = el("div", { class: "mapbox" }, this.canvas);
    this.by = "tenant";
    this.chosen = { zone: null, rack: null };
    this.inner = null;
    this.node = null; // selected
    this.marked = null; // a key: all others are dimmed
    this.markedNodes = null; // a set of nodes: all others are dimmed
    this.onSelect = selected;
    this.onZoom = zoomed;
    this.canvas.addEventListener("click", (event) => this.point(event, false));
    this.canvas.addEventListener("dblclick", (event) => this.point(event, true));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.box);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", () => this.draw());
  }

  close() {
    this.resize.disconnect();
  }

  set(map) {
    this.map = map;
    this.starts = offsets(map);
    const outside = ["region", "zone"].map((name) => map.levels.indexOf(name)).filter((i) => i >= 0);
    this.outer = outside.length ? outside[outside.length - 1] : -1;
    const inside = map.levels.map((name, i) => i).filter((i) => i !== this.outer && !["region"].includes(map.levels[i]));
    const rack = map.levels.indexOf("rack");
    this.choices = inside.map((i) => map.levels[i]);
    this.inner = inside.includes(this.inner) ? this.inner : rack >= 0 ? rack : inside[0] ?? -1;
    this.count();
    this.draw();
  }

  // Counts the cells of each owner, so that the largest get the most distinct colours.
  count() {
    const { owners, cells } = this.map, numbers = new Int32Array(owners.length);
    for (const cell of cells) if (cell >= 0) numbers[cell]++;
    const totals = new Map();
    owners.forEach((owner, i) => {
      const key = keyOf(owner, this.by);
      totals.set(key, (totals.get(key) || 0) + numbers[i]);
    });
    this.totals = [...totals].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    assign(this.totals.map(([key]) => `${this.by}:${key}`).filter((key) => !key.endsWith(":")));
  }

  colour(key) {
    const shades = this.shades || (this.shades = palette(isDark()));
    return key === "" ? shades.hidden : shades.colours[colourOf(`${this.by}:${key}`)];
  }

  // Draws in the next frame, once, however often it is asked for.
  draw() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      performance.mark("draw-start");
      this.paint();
      performance.measure("kubenexus-draw", "draw-start");
    });
  }

  paint() {
    if (!this.map || !this.box.isConnected) return;
    if (this.node !== null && this.node >= this.map.names.length) this.node = null;
    const width = Math.max(280, this.box.clientWidth), height = Math.max(260, this.box.clientHeight);
    this.shades = palette(isDark());
    this.placed = layout(this.map, groups(this.map, this.outer, this.inner, this.chosen), width, height);
    const scale = Math.min(2, devicePixelRatio || 1), tall = Math.max(height, this.placed.height);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(tall * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${tall}px`;
    const context = this.canvas.getContext("2d", { alpha: false });
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = this.shades.panel;
    context.fillRect(0, 0, width, tall);
    this.drawBoxes(context);
    this.drawCells(context);
    this.drawSelected(context);
  }

  drawBoxes(context) {
    const { shades, placed } = this;
    context.textBaseline = "top";
    for (const group of placed.groups) {
      context.fillStyle = shades.box;
      context.beginPath();
      context.roundRect(group.x, group.y, group.w, group.h, 6);
      context.fill();
      if (group.name) {
        context.font = "600 12px system-ui, sans-serif";
        context.fillStyle = shades.text;
        context.fillText(clipped(context, `${this.map.levels[this.outer]} ${group.name}`, group.w - 14), group.x + 8, group.y + 6);
      }
      context.font = "10px system-ui, sans-serif";
      for (const part of group.parts) {
        if (part.name && part.label >= 13) {
          context.fillStyle = shades.text;
          context.fillText(clipped(context, part.name, part.w), part.x + 1, part.y + 1);
        }
      }
    }
  }

  drawCells(context) {
    const { map, placed, shades, starts } = this, size = placed.size, inner = size - (size >= 12 ? 2 : 1);
    const whole = size < CELLS_FROM, buckets = new Map();
    const add = (colour, x, y, w, h) => {
      let list = buckets.get(colour);
      if (!list) buckets.set(colour, (list = []));
      list.push(x, y, w, h);
    };
    const keys = map.owners.map((owner) => keyOf(owner, this.by));
    const colours = keys.map((key) => this.colour(key));
    const dimmed = (node, cell) =>
      (this.marked !== null && (cell < 0 || keys[cell] !== this.marked)) ||
      (this.markedNodes !== null && !this.markedNodes.has(node));
    const cordoned = [], dim = [];
    for (const node of placed.order) {
      const x = placed.x[node], y = placed.y[node], first = starts[node], last = starts[node + 1];
      if (map.states[node]) cordoned.push(x, y);
      if (this.by === "use" || whole) {
        let used = 0, best = -1;
        for (let i = first; i < last; i++) if (map.cells[i] >= 0) { used++; best = map.cells[i]; }
        const part = map.gpus[node] ? used / (last - first) : Math.min(1, map.cpu[node] / 1000);
        const colour = this.by === "use" ? shades.use[Math.ceil(part * 5)] : best < 0 ? shades.free : colours[best];
        add(colour, x, y, inner, inner);
        if (dimmed(node, best)) dim.push(x, y, inner, inner);
        continue;
      }
      const number = last - first, columns = number <= 2 ? number : Math.ceil(number / 2 / Math.max(1, Math.floor(number / 16)));
      const rows = Math.ceil(number / columns), w = inner / columns, h = inner / rows, gap = size >= 14 ? 1 : size >= 9 ? 0.5 : 0;
      for (let i = 0; i < number; i++) {
        const cell = map.cells[first + i], cx = x + (i % columns) * w, cy = y + Math.floor(i / columns) * h;
        const colour = cell >= 0 ? colours[cell] : cell === -2 ? shades.unusable : shades.free;
        add(colour, cx, cy, w - gap, h - gap);
        if (dimmed(node, cell)) dim.push(cx, cy, w - gap + 0.2, h - gap + 0.2);
      }
    }
    for (const [colour, list] of buckets) {
      context.fillStyle = colour;
      for (let i = 0; i < list.length; i += 4) context.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
    }
    if (dim.length) {
      context.globalAlpha = 0.82;
      context.fillStyle = shades.panel;
      for (let i = 0; i < dim.length; i += 4) context.fillRect(dim[i], dim[i + 1], dim[i + 2], dim[i + 3]);
      context.globalAlpha = 1;
    }
    context.strokeStyle = shades.cordoned;
    context.lineWidth = size >= 9 ? 1.5 : 1;
    for (let i = 0; i < cordoned.length; i += 2)
      context.strokeRect(cordoned[i] + 0.25, cordoned[i + 1] + 0.25, inner - 0.5, inner - 0.5);
  }

  drawSelected(context) {
    if (this.node === null || this.placed.x[this.node] < 0) return;
    const size = this.placed.size;
    context.strokeStyle = this.shades.strong;
    context.lineWidth = 2;
    context.strokeRect(this.placed.x[this.node] - 1.5, this.placed.y[this.node] - 1.5, size + 1, size + 1);
  }

  point(event, enter) {
    const box = this.canvas.getBoundingClientRect();
    const found = at(this.placed, event.clientX - box.left, event.clientY - box.top);
    if (enter) return this.enter(found.group, found.part);
    if (found.node !== null) this.select(found.node);
  }

  select(node) {
    this.node = node;
    this.draw();
    this.onSelect(node);
  }

  // One level further in: to the zone, then to the rack.
  enter(group, part) {
    if (!group) return;
    const next = { ...this.chosen };
    if (next.zone === null && this.outer >= 0 && this.placed.groups.length > 1) next.zone = group.code;
    else if (next.rack === null && this.inner >= 0 && part) Object.assign(next, { zone: group.code, rack: part.code });
    else return;
    this.zoom(next);
  }

  zoom(chosen) {
    this.chosen = chosen;
    this.draw();
    this.onZoom(chosen);
  }

  out() {
    if (this.chosen.rack !== null) this.zoom({ ...this.chosen, rack: null });
    else if (this.chosen.zone !== null) this.zoom({ zone: null, rack: null });
  }

  key(event) {
    const order = this.placed.order, here = this.node === null ? -1 : order.indexOf(this.node);
    const part = this.node === null ? null : this.partOf(this.node);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: part?.columns ?? 1, ArrowUp: -(part?.columns ?? 1), Home: -order.length, End: order.length };
    if (event.key in steps && order.length) {
      event.preventDefault();
      this.select(order[Math.min(order.length - 1, Math.max(0, here + steps[event.key]))]);
    } else if (event.key === "Enter" && part) {
      event.preventDefault();
      this.enter(this.groupOf(part), part);
    } else if (event.key === "Escape") this.out();
  }

  partOf(node) {
    for (const group of this.placed.groups) for (const part of group.parts) if (part.nodes.includes(node)) return part;
    return null;
  }

  groupOf(part) {
    return this.placed.groups.find((group) => group.parts.includes(part)) ?? null;
  }
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end = Math.floor(end * 0.8);
  return `${text.slice(0, end)}…`;
}
