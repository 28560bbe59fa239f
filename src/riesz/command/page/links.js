// Parts that are the same light up together: in formula, code, diagram and picture.
// A part is known by its number within one space (a formula; the closed form and its code), and across spaces by what
// is written there.
import { make } from "./graft.js";

const names = new WeakMap();
const legends = new WeakMap();

/** What a box of a diagram stands for: its name, or what the lines below the diagram say that it is. */
function labelled(element) {
  const svg = element.closest("svg");
  if (!legends.has(svg)) {
    const lines = [...svg.querySelectorAll("text")].map((t) => t.textContent.match(/^(\S+) = (.+)$/)).filter(Boolean);
    legends.set(svg, new Map(lines.map(([, name, meaning]) => [name, meaning])));
  }
  return legends.get(svg).get(element.dataset.name) ?? element.dataset.name;
}

/** What is written in a part, without the signs in which notations differ. */
function written(element) {
  if (!names.has(element)) {
    const text = element.dataset.text ?? (element.dataset.name != null ? labelled(element) : element.textContent);
    names.set(element, text.length > 400 ? "" : text.replace(/\b(np|jnp|torch|scipy\.special)\./g, "").replace(/[\s\u2061\u2062\u2009⋆·∗*@.]/g, "").replace(/⊤|'$/g, "ᵀ").replace(/²/g, "2").replace(/[-−]/g, "−"));
  }
  return names.get(element);
}

export class Links {
  constructor(root) {
    this.root = root;
    root.addEventListener("pointerover", (e) => this.pointed(e.target));
    root.addEventListener("pointerleave", () => this.clear());
    root.addEventListener("focusout", () => this.clear());
  }

  /** A box whose parts take part; arrow keys walk through them. */
  add(box, space, label) {
    box.classList.add("linked");
    box.dataset.space = space;
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", label);
    box.addEventListener("keydown", (e) => this.walked(e, box));
    return box;
  }

  pointed(target) {
    const part = target.closest?.("[data-id], [data-text]");
    if (!part || !part.closest(".linked")) return this.clear();
    this.light(part);
  }

  light(part) {
    if (part === this.lit) return;
    this.clear();
    this.lit = part;
    const space = part.closest(".linked").dataset.space, id = part.dataset.id, text = written(part);
    const row = part.closest("mtr")?.textContent.replace(/[\s\u2061\u2062]/g, "").match(/^∂f\d*∂(\w+)=/)?.[1];
    for (const other of this.root.querySelectorAll(".linked [data-id], .linked [data-text]")) {
      const home = other.closest(".linked").dataset.space;
      const same = id != null && other.dataset.id === id && home === space;
      if (same || (text && written(other) === text)) other.classList.add("lit");
      else if (row && other.dataset.text === row) other.classList.add("near");
    }
    part.classList.add("lit");
  }

  clear() {
    for (const part of this.root.querySelectorAll(".lit, .near")) part.classList.remove("lit", "near");
    this.lit = null;
  }

  walked(e, box) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: "in", ArrowUp: "out" };
    const step = steps[e.key];
    if (!step || e.target !== box) return;
    const parts = [...box.querySelectorAll("[data-id], [data-text]")];
    if (!parts.length) return;
    e.preventDefault();
    const at = parts.indexOf(this.lit);
    let next = parts[0];
    if (at >= 0) {
      const here = parts[at];
      if (step === "in") next = here.querySelector("[data-id]") ?? here;
      else if (step === "out") next = here.parentElement.closest("[data-id]") ?? here;
      else {
        const beside = parts.filter((p) => p.parentElement.closest("[data-id]") === here.parentElement.closest("[data-id]"));
        next = beside[beside.indexOf(here) + step] ?? parts[at + step] ?? here;
      }
    }
    this.light(next);
    this.said ??= this.root.appendChild(make("p", { class: "away", "aria-live": "polite" }));
    this.said.textContent = next.dataset.text ?? next.dataset.name ?? next.textContent;
  }
}
