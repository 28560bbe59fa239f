// Elements from outside: MathML and SVG as text become elements only by these names. Nothing is ever set as HTML.

const MATH = new Set(("math mrow mi mn mo ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder munderover " +
  "mtable mtr mtd mpadded mphantom mstyle").split(" "));
const SVG = new Set(("svg g path rect circle ellipse line polyline polygon text tspan title desc defs marker " +
  "clipPath linearGradient stop").split(" "));
const ATTRIBUTES = new Set(("class data-id data-slot data-name data-kind viewBox width height x y x1 y1 x2 y2 cx cy r rx ry d points " +
  "transform fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-dasharray stroke-linecap " +
  "stroke-linejoin opacity font-size font-family font-style font-weight text-anchor dominant-baseline dx dy " +
  "shape-rendering role aria-label aria-labelledby preserveAspectRatio vector-effect paint-order id marker-end " +
  "marker-start refX refY markerWidth markerHeight markerUnits orient offset stop-color stop-opacity clip-path " +
  "display mathvariant stretchy fence form largeop lspace rspace linethickness displaystyle scriptlevel " +
  "columnalign rowspacing columnspacing movablelimits accent symmetric minsize maxsize separator").split(" "));
const SPACES = { math: "http://www.w3.org/1998/Math/MathML", svg: "http://www.w3.org/2000/svg" };
const STYLES = new Set(("text-align font-size font-family font-weight font-style fill stroke opacity stroke-width color " +
  "flex padding text-anchor").split(" "));
let grafts = 0;

/** The elements of some MathML or SVG; null where it is neither. Ids get a prefix of their own. */
export function graft(text, kind) {
  const unstyled = text.replace(/<[^<>]*>/g, (tag) => tag.replace(/\sstyle=/g, " data-style="));  // the page's policy allows no style attributes
  const read = new DOMParser().parseFromString(unstyled, "application/xml");
  const root = read.documentElement;
  if (!root || root.localName !== kind || read.querySelector("parsererror")) return null;
  return copied(root, kind === "math" ? MATH : SVG, SPACES[kind], `g${++grafts}-`);
}

function copied(from, names, space, prefix) {
  const made = document.createElementNS(space, from.localName);
  for (const { name, value } of from.attributes) {
    if (name === "data-style") styled(made, value);
    else if (ATTRIBUTES.has(name)) made.setAttribute(name, own(name, value, prefix));
  }
  for (const child of from.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) made.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && names.has(child.localName)) made.append(copied(child, names, space, prefix));
  }
  return made;
}

function own(name, value, prefix) {
  if (name === "id") return prefix + value;
  if (name === "aria-labelledby") return value.split(/\s+/).map((id) => prefix + id).join(" ");
  return value.replace(/url\(([^)]*)\)/g, (_, inside) => /^#[\w-]+$/.test(inside) ? `url(#${prefix}${inside.slice(1)})` : "none");
}

function styled(element, style) {
  for (const part of style.split(";")) {
    const [name, value] = part.split(":").map((s) => s.trim());
    if (STYLES.has(name) && value && !value.includes("url(")) element.style.setProperty(name, value);
  }
}

/** An element: make("button", {class: "small"}, "text", …). */
export function make(name, given = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...inside.filter((x) => x != null));
  return made;
}

/** A type such as ℝ^(2×3) → ℝ^2, with exponents raised. */
export const raised = (text) => text.split(/(\^(?:\([^()]*\)|[\d×]+))/).map((part) => part.startsWith("^") ? make("sup", {}, part.replace(/[\^()]/g, "")) : part);

/** Text as it is copied: without marks. */
export const plain = (text) => text.replace(/\ue000\d+\ue001|\ue002/g, "");

/** Code whose parts are marked, as elements. */
export function marked(text) {
  const root = document.createDocumentFragment();
  const stack = [root];
  for (const part of text.split(/(\ue000\d+\ue001|\ue002)/)) {
    if (part.startsWith("\ue000")) {
      const inner = make("span", { "data-id": part.slice(1, -1) });
      stack.at(-1).append(inner);
      stack.push(inner);
    } else if (part === "\ue002") {
      if (stack.length > 1) stack.pop();
    } else if (part) stack.at(-1).append(part);
  }
  return root;
}
