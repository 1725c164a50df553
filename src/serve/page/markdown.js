import hljs from "./vendor/highlight.min.js";
import { Marked } from "./vendor/marked.esm.js";
import "./vendor/purify.min.js";

const purify = globalThis.DOMPurify;

const rules = {
  ALLOWED_TAGS: ["a", "b", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "i", "kbd",
    "li", "ol", "p", "pre", "s", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "u",
    "ul"],
  ALLOWED_ATTR: ["align", "class", "href", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const harmlessTag = /^<\/?(?:br|sub|sup|kbd|b|i|u|s)\s*\/?>$/i;
const longestHighlighted = 60000;

function escaped(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    heading({ tokens, depth }) {
      const level = Math.min(depth + 2, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    // Markup in an answer is shown as it was written.
    html({ text, block }) {
      if (harmlessTag.test(text.trim())) return text;
      return block ? `<p class="raw">${escaped(text.trimEnd())}</p>` : escaped(text);
    },
    // Nothing is loaded from elsewhere.
    image({ href, text }) {
      return `<a href="${escaped(href)}">${escaped(text || href)}</a>`;
    },
    checkbox({ checked }) {
      return checked ? "☑ " : "☐ ";
    },
    code({ text, lang }) {
      const language = /^[\w+#.-]{1,30}/.exec(lang ?? "")?.[0] ?? "";
      return `<pre><code class="language-${language}">${escaped(text)}\n</code></pre>`;
    },
  },
});

// The top-level blocks of a Markdown text; their `raw` add up to it.
export function blocksOf(source) {
  return marked.lexer(source);
}

export function languageOf(code) {
  return /(?:^| )language-(\S+)/.exec(code.className)?.[1] ?? "";
}

function highlight(code) {
  const language = languageOf(code);
  const text = code.textContent;
  if (!hljs.getLanguage(language) || text.length > longestHighlighted) return;
  const { value } = hljs.highlight(text, { language, ignoreIllegals: true });
  code.replaceChildren(purify.sanitize(value, rules));
}

// One of `blocksOf` as a fragment of the document. All markup passes the sanitizer.
export function render(block) {
  const fragment = purify.sanitize(marked.parser([block]), rules);
  for (const link of fragment.querySelectorAll("a[href]")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
  for (const code of fragment.querySelectorAll("pre > code")) highlight(code);
  return fragment;
}
