export const byId = (id) => document.getElementById(id);

// An element with a class, a text and children, all optional.
export function element(name, className = "", text = "", ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

export function button(text, className, onClick) {
  const made = element("button", className, text);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

const svgNamespace = "http://www.w3.org/2000/svg";

export function svgShape(parent, name, attributes) {
  const shape = document.createElementNS(svgNamespace, name);
  for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
  parent.append(shape);
  return shape;
}

const drawings = {
  rename: "M4 16l1-4 8-8 3 3-8 8zM11 6l3 3",
  remove: "M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11",
};

// A button that shows a drawing and is called `label`.
export function iconButton(drawing, label, onClick) {
  const made = button("", "icon", onClick);
  made.setAttribute("aria-label", label);
  made.title = label;
  const svg = svgShape(made, "svg", { viewBox: "0 0 20 20", "aria-hidden": "true" });
  svgShape(svg, "path", { d: drawings[drawing] });
  return made;
}
