// Colours of owners: the same owner keeps its colour while the page is open, and large owners get distinct ones.

const HUES = [258, 28, 152, 330, 85, 205, 300, 55, 178, 5, 232, 118];
const known = new Map();

export function palette(dark) {
  const colours = [];
  for (const [light, chroma] of dark ? [[0.72, 0.13], [0.58, 0.11]] : [[0.62, 0.15], [0.74, 0.11]])
    for (const hue of HUES) colours.push(`oklch(${light} ${chroma} ${hue})`);
  return {
    colours,
    hidden: dark ? "#59636f" : "#a6afba",
    free: dark ? "#2a333f" : "#dbe1e9",
    unusable: dark ? "#7d3030" : "#d98c8c",
    edge: dark ? "#303a46" : "#d5dbe3",
    box: dark ? "#12171d" : "#f4f6f9",
    panel: dark ? "#161b22" : "#ffffff",
    text: dark ? "#c3ccd7" : "#3d4757",
    strong: dark ? "#ffffff" : "#10151d",
    cordoned: dark ? "#d6a13a" : "#a86a00",
    use: dark
      ? ["#222a34", "#23405e", "#2a5f92", "#3a86c8", "#7fb4e3", "#d5e7f7"]
      : ["#e4e8ee", "#cfe0f3", "#9cc2e8", "#5f9bd6", "#2f72b8", "#154a85"],
  };
}

// Returns the index of an owner's colour. `names` come from the largest to the smallest.
export function assign(names) {
  const taken = new Set(known.values());
  for (const name of names) {
    if (known.has(name)) continue;
    let free = 0;
    while (taken.has(free) && free < 2 * HUES.length) free++;
    const index = free < 2 * HUES.length ? free : hash(name) % (2 * HUES.length);
    taken.add(index);
    known.set(name, index);
  }
  if (known.size > 20000) known.clear(); // names that are gone
}

export const colourOf = (name) => known.get(name) ?? hash(name) % (2 * HUES.length);

function hash(text) {
  let value = 7;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) >>> 0;
  return value;
}
