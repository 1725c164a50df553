import { svgShape } from "./dom.js";

// A line of the last `capacity` values in an <svg>, from 0 to `top` or to the largest value.
export class Plot {
  constructor(svg, { capacity = 120, top = 0 } = {}) {
    this.capacity = capacity;
    this.top = top;
    this.values = [];
    svg.setAttribute("viewBox", "0 0 100 40");
    svg.setAttribute("preserveAspectRatio", "none");
    this.area = svgShape(svg, "polygon", { class: "area" });
    this.line = svgShape(svg, "polyline", { class: "line" });
  }

  push(value) {
    this.values.push(value);
    if (this.values.length > this.capacity) this.values.shift();
    this.draw();
  }

  draw() {
    const top = this.top || Math.max(...this.values) || 1;
    const step = 100 / (this.capacity - 1);
    const points = this.values.map(
      (value, i) => `${(i * step).toFixed(2)},${(39 - 38 * Math.min(value / top, 1)).toFixed(2)}`);
    const end = ((this.values.length - 1) * step).toFixed(2);
    this.line.setAttribute("points", points.join(" "));
    this.area.setAttribute("points", ["0,40", ...points, `${end},40`].join(" "));
  }
}
