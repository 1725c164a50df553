import { element } from "./dom.js";

const farthest = 400;  // characters of markup that may lie between two words

// The text nodes of `root` in groups that follow one another in the source without markup between:
// a block of code is one, every other text node is its own.
function groupsOf(root) {
  const groups = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  let code = null;
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const inside = node.parentElement?.closest("pre > code") ?? null;
    if (inside && inside === code) groups.at(-1).push(node);
    else groups.push([node]);
    code = inside;
  }
  return groups;
}

// Where `text` comes from: [{at, from, length}], `at` in the text and `from` in `source`. Looks from
// `cursor` on, for the whole text or else for its words; what is not found is left out.
function placesOf(text, source, cursor) {
  const whole = source.indexOf(text.trimEnd(), cursor);
  if (whole >= 0) return [{ at: 0, from: whole, length: text.trimEnd().length }];
  const places = [];
  for (const match of text.matchAll(/\S+/g)) {
    const from = source.indexOf(match[0], cursor);
    if (from < 0 || from - cursor > farthest) continue;
    places.push({ at: match.index, from, length: match[0].length });
    cursor = from + match[0].length;
  }
  return places;
}

function cutRanges(places, ranges) {
  const cuts = [];
  for (const { at, from, length } of places) {
    for (const range of ranges) {
      const start = Math.max(range.from, from);
      const end = Math.min(range.to, from + length);
      if (start < end) cuts.push({ start: at + start - from, end: at + end - from });
    }
  }
  return cuts;
}

function mark(node, start, end) {
  const middle = start > 0 ? node.splitText(start) : node;
  if (end - start < middle.length) middle.splitText(end - start);
  const made = element("mark", "draft");
  middle.replaceWith(made);
  made.append(middle);
}

function markGroup(nodes, cuts) {
  let base = 0;
  for (const node of nodes) {
    const length = node.length;
    for (const { start, end } of cuts.toReversed()) {
      const from = Math.max(start - base, 0);
      const to = Math.min(end - base, length);
      if (from < to) mark(node, from, to);
    }
    base += length;
  }
}

// Marks what lies in `ranges` ([{from, to}] in `source`) in the rendered text below `root`. Rendered
// text is the source in order, without its markup.
export function tint(root, source, ranges) {
  let cursor = 0;
  for (const nodes of groupsOf(root)) {
    const text = nodes.map((node) => node.data).join("");
    if (text.trim() === "") continue;
    const places = placesOf(text, source, cursor);
    if (places.length === 0) continue;
    cursor = places.at(-1).from + places.at(-1).length;
    markGroup(nodes, cutRanges(places, ranges));
  }
}
