// Curves, heights and arrows as SVG, drawn from numbers on a grid.

const NS = "http://www.w3.org/2000/svg";
const W = 420, H = 320, LEFT = 46, BOTTOM = 30, TOP = 10, RIGHT = 10;

function el(name, given, ...inside) {
  const made = document.createElementNS(NS, name);
  for (const [k, v] of Object.entries(given)) made.setAttribute(k, v);
  made.append(...inside);
  return made;
}

/** The picture of a plot: a line with its slope, or heights with the gradient. */
export function drawn(p, point, names) {
  const svg = el("svg", { xmlns: NS, viewBox: `0 0 ${W} ${H}`, role: "img", class: "chart" });
  svg.append(el("title", {}, p.kind === "line" ? "The function and its derivative around the point" : "Contour lines of the function and arrows of its gradient around the point"));
  return p.kind === "line" ? line(svg, p, point, names) : field(svg, p, point);
}

function ticks([a, b], count) {
  const step = (b - a) / count, power = 10 ** Math.floor(Math.log10(step));
  const nice = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= step);
  const found = [];
  for (let t = Math.ceil(a / nice) * nice; t <= b + nice * 1e-9; t += nice) found.push(Number(t.toPrecision(6)));
  return found;
}

function frame(svg, xs, ys, names) {
  const x = (v) => LEFT + (v - xs[0]) / (xs[1] - xs[0]) * (W - LEFT - RIGHT);
  const y = (v) => H - BOTTOM - (v - ys[0]) / (ys[1] - ys[0]) * (H - BOTTOM - TOP);
  const small = { "font-size": 11, class: "tick" };
  for (const t of ticks(xs, 6)) svg.append(el("line", { x1: x(t), x2: x(t), y1: TOP, y2: H - BOTTOM, class: "grid" }), el("text", { ...small, x: x(t), y: H - BOTTOM + 14, "text-anchor": "middle" }, String(t)));
  for (const t of ticks(ys, 5)) svg.append(el("line", { x1: LEFT, x2: W - RIGHT, y1: y(t), y2: y(t), class: "grid" }), el("text", { ...small, x: LEFT - 5, y: y(t) + 4, "text-anchor": "end" }, Math.abs(t) >= 1e4 ? t.toExponential(0) : String(t)));
  svg.append(el("text", { x: W - RIGHT, y: H - 4, "text-anchor": "end", class: "axis", "font-size": 12 }, names[0]));
  if (names[1]) svg.append(el("text", { x: 4, y: TOP + 10, class: "axis", "font-size": 12 }, names[1]));
  return [x, y];
}

function line(svg, p, point, names) {
  const both = [...p.values, ...p.slopes].filter((v) => v != null).sort((a, b) => a - b);
  if (!both.length) return svg;
  let low = both[Math.floor(both.length * 0.02)], high = both[Math.ceil(both.length * 0.98) - 1];
  const room = (high - low || 1) * 0.1;
  [low, high] = [low - room, high + room];
  const [x, y] = frame(svg, p.ends[0], [low, high], [names[0]]);
  const at = (k) => p.ends[0][0] + k / (p.values.length - 1) * (p.ends[0][1] - p.ends[0][0]);
  const path = (values) => {
    let d = "", on = false;
    values.forEach((v, k) => {
      const fits = v != null && v > low - 3 * (high - low) && v < high + 3 * (high - low);
      if (fits) d += `${on ? "L" : "M"}${x(at(k)).toFixed(1)} ${y(v).toFixed(1)}`;
      on = fits;
    });
    return d;
  };
  const clip = `clip${Math.random().toString(36).slice(2)}`;
  svg.append(el("defs", {}, el("clipPath", { id: clip }, el("rect", { x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM }))));
  svg.append(el("g", { "clip-path": `url(#${clip})` }, el("path", { d: path(p.slopes), class: "slope" }), el("path", { d: path(p.values), class: "curve" }),
    el("line", { x1: x(point[0]), x2: x(point[0]), y1: TOP, y2: H - BOTTOM, class: "here" })));
  svg.append(el("text", { x: LEFT + 8, y: TOP + 14, class: "key curve", "font-size": 12 }, "— f"), el("text", { x: LEFT + 44, y: TOP + 14, class: "key slope", "font-size": 12 }, "┄ f′"));
  return svg;
}

function field(svg, p, point) {
  const known = p.values.filter((v) => v != null).sort((a, b) => a - b);
  if (!known.length) return svg;
  const [x, y] = frame(svg, p.ends[0], p.ends[1], p.names);
  const n = p.side, levels = [];
  for (let k = 1; k < 12; k++) levels.push(known[Math.floor(k / 12 * (known.length - 1))]);
  const px = (i) => x(p.ends[0][0] + i / (n - 1) * (p.ends[0][1] - p.ends[0][0]));
  const py = (j) => y(p.ends[1][0] + j / (n - 1) * (p.ends[1][1] - p.ends[1][0]));
  [...new Set(levels)].forEach((level, k) => {
    svg.append(el("path", { d: contour(p.values, n, level, px, py), class: "contour", "stroke-opacity": (0.35 + 0.6 * k / 11).toFixed(2) }));
  });
  const longest = Math.max(...p.arrows[0].map((u, k) => Math.hypot(u ?? 0, p.arrows[1][k] ?? 0)), 1e-300);
  p.at[0].forEach((a, k) => {
    const u = p.arrows[0][k], v = p.arrows[1][k];
    const size = u == null || v == null ? 0 : Math.hypot(u, v);
    if (!size) return;
    const reach = 16 * (size / longest) ** 0.35, ux = u / size, uy = -v / size, bx = x(a), by = y(p.at[1][k]);
    const tip = [bx + reach * ux, by + reach * uy], h = Math.min(4, reach / 2);
    const wing = (s) => `${(tip[0] - h * (ux + s * uy * 0.6)).toFixed(1)} ${(tip[1] - h * (uy - s * ux * 0.6)).toFixed(1)}`;
    svg.append(el("path", { d: `M${bx.toFixed(1)} ${by.toFixed(1)}L${tip[0].toFixed(1)} ${tip[1].toFixed(1)}M${wing(1)}L${tip[0].toFixed(1)} ${tip[1].toFixed(1)}L${wing(-1)}`, class: "arrow" }));
  });
  svg.append(el("circle", { cx: x(point[0]), cy: y(point[1]), r: 4.5, class: "here" }));
  return svg;
}

/** The lines of one height, cell by cell. */
function contour(values, n, level, px, py) {
  let d = "";
  const cut = (a, b) => (level - a) / (b - a);
  for (let j = 0; j + 1 < n; j++) {
    for (let i = 0; i + 1 < n; i++) {
      const [a, b, c, e] = [values[j * n + i], values[j * n + i + 1], values[(j + 1) * n + i + 1], values[(j + 1) * n + i]];
      if (a == null || b == null || c == null || e == null) continue;
      const ends = [];
      if (a < level !== b < level) ends.push([i + cut(a, b), j]);
      if (b < level !== c < level) ends.push([i + 1, j + cut(b, c)]);
      if (e < level !== c < level) ends.push([i + cut(e, c), j + 1]);
      if (a < level !== e < level) ends.push([i, j + cut(a, e)]);
      for (let k = 0; k + 1 < ends.length; k += 2) d += `M${px(ends[k][0]).toFixed(1)} ${py(ends[k][1]).toFixed(1)}L${px(ends[k + 1][0]).toFixed(1)} ${py(ends[k + 1][1]).toFixed(1)}`;
    }
  }
  return d;
}
