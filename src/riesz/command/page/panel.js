// One function on the page: what is asked, and the cards that show what came back.
import { graft, make, marked, plain, raised } from "./graft.js";
import { Links } from "./links.js";
import { drawn } from "./plot.js";

const PAUSE = 30;  // milliseconds after the last key
const TARGETS = { numpy: "NumPy", jax: "JAX", torch: "PyTorch", julia: "Julia", matlab: "MATLAB", c: "C", latex: "LaTeX", text: "Text" };
const SIDES = { derivative: "Derivative", adjoint: "Adjoint", order: "Contraction" };
const FIRST = { target: "numpy", kind: "0", side: "derivative", matrix: "0", step: "0" };
const CHOICES = { target: (v) => Object.hasOwn(TARGETS, v), side: (v) => Object.hasOwn(SIDES, v), kind: (v) => /^[01]$/.test(v), matrix: (v) => /^[01]$/.test(v), step: (v) => /^\d{1,4}$/.test(v) };
const me = Math.random().toString(36).slice(2);
let count = 0;

export class Panel {
  constructor(index, page) {
    this.page = page;
    this.index = index;
    this.root = document.getElementById("panel").content.firstElementChild.cloneNode(true);
    this.input = this.root.querySelector("textarea");
    this.sizes = this.root.querySelector(".shapes input");
    this.problem = this.root.querySelector(".problem");
    this.cards = Object.fromEntries([...this.root.querySelectorAll(".card")].map((c) => [c.dataset.name, c]));
    this.links = new Links(this.root);
    this.chosen = { ...FIRST };
    this.columns = 1;
    this.point = null;
    this.parts = {};
    const typed = () => { this.point = null; this.grown(); this.soon(); };
    this.input.addEventListener("input", typed);
    this.sizes.addEventListener("input", () => { this.own = true; typed(); });
    this.input.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && !e.shiftKey && !this.input.value.includes("def ")) { e.preventDefault(); this.now(); }
    });
  }

  get text() { return this.input.value; }
  get shapes() { return this.sizes.value.trim().replace(/\s+/g, " "); }

  /** What was chosen, as links have it: where it is not what is shown at first. */
  get choices() {
    return Object.entries(this.chosen).filter(([name, value]) => value !== FIRST[name]).map((pair) => pair.join(".")).join(" ");
  }

  set choices(words) {
    const given = words.split(" ").map((word) => word.split(".")).filter(([name, value]) => Object.hasOwn(CHOICES, name) && CHOICES[name](value ?? ""));
    this.chosen = { ...FIRST, ...Object.fromEntries(given) };
  }

  choose(name, value) {
    this.chosen[name] = String(value);
    this.page.keep();
  }

  set(text, shapes, point, columns = this.columns) {
    this.own = false;
    this.input.value = text;
    this.sizes.value = shapes;
    this.point = point;
    this.columns = columns;
    this.grown();
    this.now();
  }

  remove() { this.aborted?.abort(); this.root.remove(); }

  named(title) {
    this.root.setAttribute("aria-label", title ? `${title} function` : "Function");
    this.root.querySelector(".text span").textContent = title ? `${title} function` : "Function";
  }

  grown() {
    this.input.rows = Math.min(12, Math.max(this.input.value.split("\n").length, 1));
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight + 2}px`;
  }

  // -- asking ------------------------------------------------------------------------------------------------

  soon() { clearTimeout(this.timer); this.timer = setTimeout(() => this.now(), PAUSE); }

  async ask(what, signal, more = {}) {
    const body = { page: `${me}-${this.index}`, text: this.text, shapes: this.shapes, ...more };
    const reply = await fetch(`api/${what}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
    return reply.json();
  }

  async now() {
    clearTimeout(this.timer);
    this.aborted?.abort();
    const { signal } = this.aborted = new AbortController();
    const busy = setTimeout(() => this.root.classList.add("busy"), 120);
    const of = `${this.text}\n${this.shapes}`;
    delete this.root.dataset.settled;
    try {
      if (!this.text.trim()) return this.refused("Type a function, such as x -> sin(x) ** 2, or choose an example.");
      const view = await this.ask("view", signal, { columns: this.columns });
      if (view.ended === "old" || signal.aborted) return;
      const misfit = view.error && this.shapes && /^this function takes \d+ shape/.test(view.error);
      if (misfit && !this.own) return this.fit();
      if (view.error) return this.refused(view.error, misfit);
      this.view = view;
      this.second = this.numbers = null;
      this.parts = {};
      this.shown();
      this.page.keep();
      const later = view.real ? this.ask("second", signal, { columns: this.columns }).then((found) => {
        if (signal.aborted || found.ended === "old") return;
        this.second = found;
        this.form(); this.code(); this.structure();
      }) : null;
      await Promise.all([later, this.there(signal)]);
    } catch (problem) {
      if (problem.name !== "AbortError") this.refused("The server does not answer. Is riesz play still running?");
    } finally {
      clearTimeout(busy);
      if (this.aborted.signal === signal && !signal.aborted) {
        this.root.classList.remove("busy");
        this.root.dataset.settled = of;
      }
    }
  }

  /** A part that is asked for only where it is looked at; null until it is there, and then shown. */
  wanted(part, more, show) {
    const { signal } = this.aborted, parts = this.parts, key = part + JSON.stringify(more);
    if (!(key in parts)) {
      parts[key] = null;
      this.ask("part", signal, { part, ...more }).then((found) => {
        if (signal.aborted || parts !== this.parts) return;
        parts[key] = found;
        show();
      }).catch(() => { delete parts[key]; });
    }
    return parts[key];
  }

  /** Numbers at the point. */
  async there(signal) {
    const found = await this.ask("numbers", signal, this.point ? { point: this.point } : {});
    if (signal.aborted || found.ended === "old") return;
    this.numbers = found;
    this.at();
    this.plot();
    this.page.compared();
  }

  /** Other arguments than before: those with known names keep their shapes, or all are guessed. */
  fit() {
    const names = this.text.split("->")[0].replace(/[()\s]/g, "").split(",").filter(Boolean);
    const known = new Map(this.view?.arguments.map((name, i) => [name, this.view.shapes[i]]));
    this.own = false;
    this.sizes.value = names.every((name) => known.has(name)) ? names.map((name) => known.get(name)).join(" ") : "";
    return this.now();
  }

  refused(words, misfit = false) {
    this.problem.textContent = words;
    if (misfit) this.problem.append("\n", make("button", { onclick: () => this.fit() }, "Fit the shapes"));
    this.problem.hidden = false;
    this.root.classList.add("stale");
    this.root.querySelector(".type").textContent = "";
    this.root.dataset.done = ++count;
  }

  // -- showing -----------------------------------------------------------------------------------------------

  shown() {
    this.problem.hidden = true;
    this.root.classList.remove("stale");
    const v = this.view;
    this.sizes.placeholder = v.guessed ? v.shapes.join(" ") : "guessed";
    this.root.querySelector(".type").replaceChildren("f : ", ...raised(v.type),
      v.guessed ? "  (shapes guessed)" : "");
    this.form(); this.maps(); this.steps(); this.diagram(); this.structure(); this.code();
    this.root.dataset.done = ++count;
  }

  /** A card anew: its title, buttons, and what is in it. The focus stays where it was. */
  card(name, title, buttons, ...inside) {
    const card = this.cards[name];
    const focused = card.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const id = `${name}-${this.index}`;
    card.setAttribute("aria-labelledby", id);
    card.replaceChildren(make("div", { class: "head" }, make("h2", { id }, title), make("div", { class: "tools" }, ...buttons)), ...inside.filter(Boolean));
    if (focused) card.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    return card;
  }

  copies(what, offers) {
    return Object.entries(offers).filter(([, text]) => text).map(([name, text]) =>
      make("button", { class: "copy", "data-key": `copy ${name}`, "aria-label": `Copy ${what} as ${name}`, onclick: () => this.copy(text, name) }, name));
  }

  async copy(text, name) {
    try {
      await navigator.clipboard.writeText(text);
      this.page.say(`${name} copied`);
    } catch {
      const area = make("textarea", { class: "away", "aria-hidden": "true" }, text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      this.page.say(`${name} copied`);
    }
  }

  tabs(label, names, current, choose) {
    const list = make("div", { class: "tabs", role: "group", "aria-label": label });
    for (const [key, name] of names) {
      list.append(make("button", { "data-key": `tab ${label} ${key}`, "aria-pressed": String(key === current), onclick: () => choose(key) }, name));
    }
    return list;
  }

  /** Something printed in three alphabets. */
  formula(x, space, label) {
    if (!x) return make("p", { class: "quiet" }, "…");
    if (x.error) return make("pre", { class: "none", tabindex: "0" }, x.error);
    const math = x.mathml && graft(x.mathml, "math");
    const box = math ? make("div", { class: "formula" }, math) : make("pre", { class: "formula" }, x.unicode);
    return this.links.add(box, space, label);
  }

  form() {
    const { view: v, second } = this;
    const kinds = v.real ? [[0, "Gradient"], [1, "Hessian"]] : [[0, "Jacobian"]];
    const k = kinds[this.chosen.kind] ? Number(this.chosen.kind) : 0;
    const x = k ? second?.form ?? second : v.form;
    const tabs = kinds.length > 1 ? [this.tabs("closed form", kinds, k, (key) => { this.choose("kind", key); this.form(); this.code(); })] : [];
    this.card("form", kinds.length > 1 ? "Closed form" : "Jacobian", [...tabs, ...(x ? this.copies("the closed form", { TeX: x.latex, MathML: x.mathml, text: x.unicode }) : [])],
      this.formula(x, `form${k}`, `${kinds[k][1]} as a formula`),
      x?.problem ? make("p", { class: "quiet" }, `No closed form (${x.problem}); this is the program that computes it.`) : null);
  }

  maps() {
    for (const [name, title, sign] of [["derivative", "Derivative", "f′(x)"], ["adjoint", "Adjoint", "f′(x)*"]]) {
      const x = this.view[name];
      this.card(name, title, this.copies(`the ${name}`, { TeX: x.latex, MathML: x.mathml, text: x.unicode }),
        make("p", { class: "quiet" }, `${sign}, at every point${x.steps ? `, ${x.steps} steps` : ""}`), this.formula(x, name, `${title} as a linear map`));
    }
  }

  /** The derivation rule by rule: the whole derivative after the rule, what the rule made marked, and all rules. */
  steps() {
    const s = this.view.steps;
    if (s.error) return this.card("steps", "Derivation", [], make("pre", { class: "none", tabindex: "0" }, s.error));
    const all = [...s.states, ...s.adjoints.map((r) => ({ ...r, adjoint: true }))];
    const at = Math.min(Number(this.chosen.step), all.length - 1);
    const go = (k) => { this.choose("step", Math.max(0, Math.min(k, all.length - 1))); this.steps(); };
    const now = all[at];
    let film = null;
    if (s.states[0]?.state) {
      const math = graft((now.adjoint ? s.states.at(-1) : now).state, "math");
      if (math && !now.adjoint) math.querySelector(`[data-id="${now.part}"]`)?.classList.add("made");
      film = make("div", { class: "film", tabindex: "0", role: "group", "aria-label": "The derivative after this rule" }, math ?? now.text ?? "");
    }
    const list = make("ol", {}, ...all.map((r, k) => make("li", { class: k === at ? "now" : k < at ? "past" : "", "aria-current": k === at ? "step" : null },
      make("button", { "data-key": `step ${k}`, tabindex: "-1", onclick: () => go(k) }, make("b", {}, (r.adjoint ? "adjoint: " : "") + r.reason), make("code", {}, r.equation)))));
    const card = this.card("steps", "Derivation, rule by rule", [make("button", { "data-key": "back", "aria-label": "Previous step", "aria-disabled": String(at === 0), onclick: () => go(at - 1) }, "←"),
      make("span", { class: "count" }, `${at + 1} of ${all.length}`), make("button", { "data-key": "on", "aria-label": "Next step", "aria-disabled": String(at === all.length - 1), onclick: () => go(at + 1) }, "→"),
      ...this.copies("the derivation", { TeX: s.latex, MathML: s.mathml, text: all.map((r) => `${r.equation}   ${r.reason}`).join("\n") })], film,
      make("div", { class: "list", tabindex: "0", role: "group", "aria-label": "Rules" }, list));
    card.onkeydown = (e) => {
      if (e.target.closest("button") && (e.key === "ArrowRight" || e.key === "ArrowLeft")) { e.preventDefault(); go(at + (e.key === "ArrowRight" ? 1 : -1)); }
    };
    const made = film?.querySelector(".made")?.getBoundingClientRect(), around = film?.getBoundingClientRect();
    if (made) film.scrollLeft += made.left + Math.min(made.width, around.width) / 2 - around.left - around.width / 2;
    const row = list.children[at], box = list.parentElement;
    if (row) box.scrollTop = Math.min(row.offsetTop, row.offsetTop - box.clientHeight / 2 + row.clientHeight / 2);
  }

  diagram() {
    const d = this.view.diagram, side = this.chosen.side;
    if (d.error) return this.card("diagram", "Diagram", [], make("pre", { class: "none", tabindex: "0" }, d.error));
    const order = side === "order" ? this.wanted("order", { columns: this.columns }, () => this.diagram()) : null;
    const drawing = order ? order.svg : d[side], label = side === "order" ? "The order of contraction" : `String diagram of the ${side}`;
    const box = drawing ? this.links.add(make("div", { class: "picture wide" }, graft(drawing, "svg")), `diagram ${side}`, label)
      : make("pre", { class: "none", tabindex: "0" }, order?.error ?? "…");
    const words = side === "order" && drawing ? make("p", { class: "quiet" }, `At the point, for ${this.columns.toLocaleString("en")} right-hand side${this.columns === 1 ? "" : "s"}: steps in dotted lines, numbered, with their operations.`) : null;
    this.card("diagram", "Diagram", [this.tabs("diagram", Object.entries(SIDES), side, (key) => { this.choose("side", key); this.diagram(); }), ...this.copies("the diagram", { SVG: drawing })], words, box);
  }

  structure() {
    const second = this.second?.structure;
    const k = this.chosen.matrix === "1" && this.view.real ? 1 : 0;
    const x = k ? second : this.view.structure;
    const tabs = this.view.real ? [this.tabs("structure", [[0, "Jacobian"], [1, "Hessian"]], k, (key) => { this.choose("matrix", key); this.structure(); })] : [];
    if (!x || x.error) return this.card("structure", "Structure and cost", tabs, make("pre", { class: "none", tabindex: "0" }, x?.error ?? this.second?.error ?? "…"));
    const words = x.words.split("; ").map((w) => make("li", {}, this.named_blocks(w, x)));
    const input = make("input", { type: "number", min: "0", max: "1000000000", value: this.columns, "data-key": "columns", oninput: () => {
      const columns = Number(input.value);
      if (!Number.isInteger(columns) || columns < 0 || input.value === "") return;
      this.columns = columns;
      this.soon();
    } });
    const short = (n) => n < 10000 ? n.toLocaleString("en") : n < 1e15 ? Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(n) : n.toExponential(1);
    const rows = x.plan.ways.map((w) => make("tr", { class: w.chosen ? "chosen" : "" }, make("th", { scope: "row" }, (w.chosen ? "→ " : "") + w.name),
      ...["once", "each", "together", "numbers"].map((c) => make("td", {}, short(w[c])))));
    const plan = make("table", { class: "plan" }, make("caption", {}, "Operations"), make("thead", {}, make("tr", {}, make("td"), ...["once", "each", "together", "kept"].map((c) => make("th", { scope: "col" }, c)))), make("tbody", {}, ...rows));
    this.card("structure", "Structure and cost", [...tabs, ...this.copies("the picture", { SVG: x.svg })],
      make("div", { class: "sides" }, this.spied(x), make("div", {}, make("p", {}, `${x.shape.map((n) => n.toLocaleString("en")).join(" × ")} matrix`), make("div", { class: "words", tabindex: "0", role: "group", "aria-label": "What is known of the structure" }, make("ul", {}, ...words)))),
      make("label", { class: "columns" }, "Right-hand sides ", input), make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Cost of each way" }, plan));
  }

  named_blocks(words, x) {
    return words.replace(/^\((\d+), (\d+)\)/, (all, i, j) => x.columns[j]?.name ? `${x.rows[i]?.name ? `${x.rows[i].name}, ` : ""}${x.columns[j].name}` : all);
  }

  /** The picture of a matrix, with a block over each argument that can be pointed at. */
  spied(x) {
    const svg = graft(x.svg, "svg");
    if (!svg) return make("p", {}, "An empty matrix.");
    const height = x.rows.reduce((n, p) => n + p.cells, 0);
    svg.style.width = `${Math.min(1.7 * Number(svg.getAttribute("width")), 280)}px`;
    for (const p of x.columns.filter((c) => c.name)) {
      const rect = document.createElementNS(svg.namespaceURI, "rect");
      for (const [k, v] of Object.entries({ x: p.first, y: 0, width: p.cells, height, class: "block", "data-text": p.name })) rect.setAttribute(k, v);
      const title = document.createElementNS(svg.namespaceURI, "title");
      title.textContent = `columns of ${p.name}: ${p.size}`;
      rect.append(title);
      svg.append(rect);
    }
    const names = x.columns.some((c) => c.name) ? make("p", { class: "quiet" }, "columns: " + x.columns.map((c) => c.name).join(", ")) : null;
    return make("div", { class: "spied" }, this.links.add(make("div", { class: "picture" }, svg), "picture", "Where the numbers of the matrix are"), names);
  }

  code() {
    const k = this.view.real && this.chosen.kind === "1" ? 1 : 0;
    const all = k ? this.second?.code : this.view.code;
    const c = this.chosen.target === "c" ? this.wanted("c", { second: k === 1 }, () => this.code()) : null;
    const found = c ? c.code ?? c : all?.[this.chosen.target];
    const box = !found ? make("p", { class: "quiet" }, "…") : found.error ? make("pre", { class: "none", tabindex: "0" }, found.error)
      : this.links.add(make("pre", { class: "source" }, marked(found)), `form${k}`, `Code in ${TARGETS[this.chosen.target]}`);
    this.card("code", `Code${this.view.real ? ` of the ${k ? "Hessian" : "gradient"}` : ""}`, [this.tabs("language", Object.entries(TARGETS), this.chosen.target, (key) => { this.choose("target", key); this.code(); }),
      ...(found && !found.error ? this.copies("the code", { code: plain(found) }) : [])], box);
  }

  // -- at a point --------------------------------------------------------------------------------------------

  at() {
    const n = this.numbers;
    if (n.error) return this.card("point", "At a point", [], make("pre", { class: "none", tabindex: "0" }, n.error));
    const flat = n.point ? n.point.flat(9) : null;
    const old = this.cards.point.querySelector(".sliders");
    const same = old && flat && old.dataset.of === JSON.stringify([n.names, n.shapes]);
    const sliders = !flat ? make("p", { class: "quiet" }, `${n.shape[1].toLocaleString("en")} numbers go in; sliders are for up to 16.`) : same ? old : this.sliders(n, flat);
    const check = n.check.error ? make("p", { class: "none" }, n.check.error)
      : make("details", { class: n.check.passed ? "passed" : "failed" }, make("summary", {}, n.check.passed ? `✓ all ${n.check.rows.length} checks passed`
          : /\b(nan|inf)\b/.test(n.value) ? "✗ f is no finite number here: nothing to check; choose another point" : "✗ a check failed"),
        make("ul", {}, ...n.check.rows.map((r) => make("li", {}, `${r.ok ? "✓" : "✗"} ${r.what} ${r.where}: ${r.observed} (${r.expected})`))));
    const digits = (v) => typeof v === "number" ? Number(v.toPrecision(4)).toString() : v;
    const matrix = n.matrix ? make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Jacobian at the point" }, make("table", { class: "matrix" }, make("caption", {}, "Jacobian there"),
      make("tbody", {}, ...n.matrix.map((row) => make("tr", {}, ...row.map((v) => make("td", v === 0 ? { class: "zero" } : {}, digits(v)))))))) : null;
    if (same) old.remove();
    this.card("point", "At a point", this.copies("the point", flat ? { point: flat.join(" ") } : {}), sliders, make("div", { class: "value" }, make("span", {}, "f = "), make("output", {}, n.value)), matrix, check);
  }

  sliders(n, flat) {
    const made = make("div", { class: "sliders", "data-of": JSON.stringify([n.names, n.shapes]) });
    let at = 0;
    n.names.forEach((name, i) => {
      const shape = n.shapes[i] === "scalar" ? [] : n.shapes[i].split(",").map(Number);
      const size = shape.reduce((a, b) => a * b, 1);
      for (let k = 0; k < size; k++, at++) {
        const place = at, index = shape.length === 2 ? `[${Math.floor(k / shape[1])}, ${k % shape[1]}]` : shape.length ? `[${k}]` : "";
        const reach = Math.max(3, Math.ceil(2 * Math.abs(flat[place])));
        const number = make("output", {}, flat[place].toFixed(2));
        const slider = make("input", { type: "range", min: -reach, max: reach, step: reach / 150, value: flat[place], oninput: () => {
          number.textContent = Number(slider.value).toFixed(2);
          this.moved(place, Number(slider.value));
        } });
        made.append(make("label", {}, make("span", {}, name + index), slider, number));
      }
    });
    this.values = [...flat];
    return made;
  }

  moved(place, value) {
    this.values[place] = value;
    this.point = [...this.values];
    if (this.moving) { this.again = true; return; }
    this.moving = true;
    const { signal } = this.aborted;
    this.there(signal).catch(() => {}).finally(() => {
      this.moving = false;
      this.page.keep();
      if (this.again) { this.again = false; this.moved(place, this.values[place]); }
    });
  }

  plot() {
    const p = this.numbers.plot;
    this.cards.plot.hidden = !p || p.error || this.numbers.error;
    if (this.cards.plot.hidden) return;
    const svg = drawn(p, this.numbers.point.flat(9), this.numbers.names);
    this.card("plot", p.kind === "line" ? "Curve and slope" : "Heights and gradient", this.copies("the plot", { SVG: new XMLSerializer().serializeToString(svg) }), make("div", { class: "picture wide" }, svg));
  }

  /** What a comparison is made of. */
  facts() {
    const v = this.view, n = this.numbers;
    if (!v || this.root.classList.contains("stale")) return null;
    const chosen = v.structure.plan?.ways.find((w) => w.chosen);
    return { type: v.type, steps: v.derivative.steps, back: v.adjoint.steps, flops: chosen?.together, numbers: chosen?.numbers,
      value: n && !n.error ? n.value : null, matrix: n ? JSON.stringify(n.matrix) : null, at: n ? JSON.stringify([n.shapes, n.point]) : null };
  }
}
