// Where each node of the map is drawn: racks flow from left to right within a box for each zone.

const PAD = 7, GAP = 8, TITLE = 18, MIN = 4, MAX = 84;

// Groups nodes: [{name, parts: [{name, nodes: [index]}]}], by name. Without a level all nodes are one group.
export function groups(map, outer, inner, chosen) {
  const column = (level) => (level < 0 ? null : map.places[level]);
  const names = (level, code) => (code < 0 ? "no " + map.levels[level] : map.domains[level][code]);
  const zones = new Map();
  for (let i = 0; i < map.names.length; i++) {
    const zone = column(outer) ? column(outer)[i] : -2;
    const rack = column(inner) ? column(inner)[i] : -2;
    if (chosen.zone !== null && chosen.zone !== zone) continue;
    if (chosen.rack !== null && chosen.rack !== rack) continue;
    if (!zones.has(zone)) zones.set(zone, new Map());
    const racks = zones.get(zone);
    if (!racks.has(rack)) racks.set(rack, []);
    racks.get(rack).push(i);
  }
  return [...zones].sort((a, b) => a[0] - b[0]).map(([zone, racks]) => ({
    code: zone,
    name: zone === -2 ? "" : names(outer, zone),
    parts: [...racks].sort((a, b) => a[0] - b[0]).map(([rack, nodes]) => ({
      code: rack,
      name: rack === -2 ? "" : names(inner, rack),
      nodes,
    })),
  }));
}

const columnsOf = (number) => Math.max(1, Math.ceil(Math.sqrt(number)));

// Sets x, y, w, h of groups and parts for nodes of `size` pixels, with `across` groups beside each other. Returns the
// height that they take.
function place(found, width, size, across) {
  const label = size >= 9 ? 14 : 4, wide = Math.floor((width - GAP * (across + 1)) / across);
  let y = GAP, row = 0;
  found.forEach((group, number) => {
    if (number % across === 0 && number) {
      y += row + GAP;
      row = 0;
    }
    const title = group.name ? TITLE : 0, left = GAP + (number % across) * (wide + GAP);
    let x = PAD, top = y + title + (title ? 4 : PAD), tallest = 0;
    for (const part of group.parts) {
      part.columns = columnsOf(part.nodes.length);
      part.label = part.name ? label : 2;
      part.w = part.columns * size + 2;
      part.h = Math.ceil(part.nodes.length / part.columns) * size + part.label + 2;
      if (x > PAD && x + part.w > wide - PAD) {
        x = PAD;
        top += tallest + PAD;
        tallest = 0;
      }
      part.x = left + x;
      part.y = top;
      x += part.w + PAD;
      tallest = Math.max(tallest, part.h);
    }
    Object.assign(group, { x: left, y, w: wide, h: top + tallest + PAD - y });
    row = Math.max(row, group.h);
  });
  return y + row + GAP;
}

// Returns the largest size of nodes with which everything fits, 0 if none does.
function largest(found, width, height, across) {
  const widest = Math.max(...found.flatMap((group) => group.parts.map((part) => columnsOf(part.nodes.length))), 1);
  let low = 0, high = Math.min(MAX, ((width - GAP * (across + 1)) / across - 2 * PAD - 2) / widest);
  for (let i = 0; i < 10 && high > MIN; i++) {
    const size = (low + high) / 2;
    if (place(found, width, size, across) <= height) low = size;
    else high = size;
  }
  return low;
}

// Places everything as large as it fits. Returns {groups, size, height, x, y: position of each node, -1 if not shown}.
export function layout(map, found, width, height) {
  let best = 0, across = 1;
  for (let number = 1; number <= Math.min(8, Math.max(1, found.length)); number++) {
    const size = largest(found, width, height, number);
    if (size > best * 1.02) [best, across] = [size, number];
  }
  const size = Math.max(MIN, Math.floor(best * 2) / 2);
  const taken = place(found, width, size, across);
  const x = new Float32Array(map.names.length).fill(-1), y = new Float32Array(map.names.length).fill(-1);
  const order = [];
  for (const group of found) {
    for (const part of group.parts) {
      part.nodes.forEach((node, i) => {
        x[node] = part.x + 1 + (i % part.columns) * size;
        y[node] = part.y + part.label + Math.floor(i / part.columns) * size;
        order.push(node);
      });
    }
  }
  return { groups: found, size, height: Math.max(taken, 60), x, y, order };
}

// Returns the node, the part and the group at a point, each null if there is none.
export function at(placed, px, py) {
  for (const group of placed.groups) {
    if (py < group.y || py > group.y + group.h || px < group.x || px > group.x + group.w) continue;
    for (const part of group.parts) {
      if (px < part.x || px > part.x + part.w || py < part.y || py > part.y + part.h) continue;
      const column = Math.floor((px - part.x - 1) / placed.size);
      const row = Math.floor((py - part.y - part.label) / placed.size);
      const inside = column >= 0 && column < part.columns && row >= 0;
      return { group, part, node: inside ? part.nodes[row * part.columns + column] ?? null : null };
    }
    return { group, part: null, node: null };
  }
  return { group: null, part: null, node: null };
}
