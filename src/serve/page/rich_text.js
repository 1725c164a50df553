import { copyButton } from "./copy.js";
import { element } from "./dom.js";
import { blocksOf, languageOf, render } from "./markdown.js";
import { Runs } from "./runs.js";
import { tint } from "./tint.js";

const pauseMilliseconds = 50;
const unsettledBlocks = 3;  // the last ones, which further text may still change

function addCodeBars(root) {
  for (const code of root.querySelectorAll("pre > code")) {
    const pre = code.parentElement;
    pre.tabIndex = 0;
    const bar = element("div", "code-bar", "", element("span", "", languageOf(code) || "text"),
                        copyButton("Copy this code", () => code.textContent));
    const box = element("div", "code");
    pre.replaceWith(box);
    box.append(bar, pre);
  }
}

function addTableFrames(root) {
  for (const table of root.querySelectorAll("table")) {
    const frame = element("div", "table");
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
}

// A Markdown text that grows. Drawn a few times a second, and only the blocks that changed.
export class RichText {
  // `onDraw` is called after each drawing, `onBlock` with the text of every block that is complete.
  constructor(body, { onDraw = () => {}, onBlock = () => {} } = {}) {
    this.body = body;
    this.onDraw = onDraw;
    this.onBlock = onBlock;
    this.source = "";
    this.runs = new Runs();
    this.blocks = [];  // {raw, start, node}
    this.numTold = 0;
    this.timer = null;
  }

  append(text, fromDrafts = false) {
    this.source += text;
    this.runs.add(text.length, fromDrafts);
    this.timer ??= setTimeout(() => this.draw(), pauseMilliseconds);
  }

  // The whole text of before, with its runs.
  restore(source, lengths) {
    this.source = source;
    this.runs = new Runs(lengths);
    this.finish();
  }

  finish() {
    this.blocks.forEach((block) => { block.stale = block.raw.includes("["); });
    this.draw(0);
    this.tell(this.blocks.length);
  }

  draw(numKept = Math.max(this.blocks.length - unsettledBlocks, 0)) {
    clearTimeout(this.timer);
    this.timer = null;
    const kept = this.blocks.slice(0, numKept);
    let start = kept.length > 0 ? kept.at(-1).start + kept.at(-1).raw.length : 0;
    for (const token of blocksOf(this.source.slice(start).replaceAll("\r", " "))) {
      kept.push(this.place(token, start, this.blocks[kept.length]));
      start += token.raw.length;
    }
    for (const block of this.blocks.slice(kept.length)) block.node.remove();
    this.blocks = kept;
    this.tell(kept.length - unsettledBlocks);
    this.onDraw();
  }

  place(token, start, before) {
    if (before && before.raw === token.raw && before.start === start && !before.stale) return before;
    const node = element("div", "block");
    node.append(render(token));
    tint(node, token.raw, this.runs.drafted(start, start + token.raw.length));
    addCodeBars(node);
    addTableFrames(node);
    if (before) before.node.replaceWith(node);
    else this.body.append(node);
    return { raw: token.raw, start, node };
  }

  tell(count) {
    for (; this.numTold < count; ++this.numTold) {
      const text = this.blocks[this.numTold].node.textContent.trim();
      if (text) this.onBlock(text);
    }
  }
}
