// The page: which functions are shown, links that restore it, examples, colours.
import { make, raised } from "./graft.js";
import { Panel } from "./panel.js";

const results = document.getElementById("results");
const typing = matchMedia("(pointer: fine)").matches;  // a phone would open its keyboard
const panels = [];
const byId = (id) => document.getElementById(id);

// -- links ---------------------------------------------------------------------------------------------------

function fragment() {
  const parts = new URLSearchParams();
  panels.forEach((p, i) => {
    const end = i ? i + 1 : "";
    parts.set(`f${end}`, p.text);
    if (p.shapes) parts.set(`s${end}`, p.shapes);
    if (p.point) parts.set(`at${end}`, p.point.join(" "));
    if (p.choices) parts.set(`v${end}`, p.choices);
  });
  if (panels[0].columns !== 1) parts.set("k", panels[0].columns);
  return "#" + parts.toString();
}

let kept = "";
function keep() {
  kept = fragment();
  history.replaceState(null, "", kept);
}

function restore() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (!parts.has("f")) return false;
  const wanted = parts.has("f2") ? 2 : 1;
  while (panels.length < wanted) added();
  while (panels.length > wanted) panels.pop().remove();
  panels.forEach((p, i) => {
    const end = i ? i + 1 : "";
    const at = (parts.get(`at${end}`) || "").split(" ").filter(Boolean).map(Number);
    const columns = Number(parts.get("k") || 1);
    p.choices = parts.get(`v${end}`) || "";
    p.set(parts.get(`f${end}`) || "", parts.get(`s${end}`) || "", at.length && at.every(Number.isFinite) ? at : null,
      Number.isInteger(columns) && columns >= 0 ? columns : 1);
  });
  arranged();
  return true;
}

addEventListener("hashchange", () => { if (location.hash !== kept) restore(); });

// -- panels --------------------------------------------------------------------------------------------------

function added() {
  const panel = new Panel(panels.length, { keep, say, compared });
  panels.push(panel);
  results.append(panel.root);
  return panel;
}

function arranged() {
  const two = panels.length > 1;
  results.classList.toggle("two", two);
  byId("compare").setAttribute("aria-pressed", two);
  panels.forEach((p, i) => p.named(two ? ["First", "Second"][i] : ""));
  compared();
}

byId("compare").addEventListener("click", () => {
  if (panels.length > 1) panels.pop().remove();
  else {
    const panel = added();
    panel.set(panels[0].text, panels[0].shapes, panels[0].point, panels[0].columns);
  }
  arranged();
  keep();
  panels.at(-1).input.focus();
});

/** What differs between two functions, in one table. */
function compared() {
  document.querySelector(".versus")?.remove();
  const [a, b] = panels.map((p) => p.facts());
  if (panels.length < 2 || !a || !b) return;
  const row = (name, of, mark) => {
    const [x, y] = [of(a), of(b)];
    return make("tr", {}, make("th", { scope: "row" }, name),
      ...[x, y].map((v, i) => make("td", mark && v != null && v < [y, x][i] ? { class: "less" } : {}, v == null ? "–" : typeof v === "number" ? v.toLocaleString("en") : v)));
  };
  const agree = a.value == null || b.value == null ? null : a.value === b.value && a.matrix === b.matrix ? "the same value and derivative at this point"
    : a.value === b.value ? "the same value at this point, another derivative" : "other values at this point";
  const table = make("table", {}, make("caption", {}, "Compared" + (agree && a.at === b.at ? `: ${agree}` : "")),
    make("thead", {}, make("tr", {}, make("td"), make("th", { scope: "col" }, "First"), make("th", { scope: "col" }, "Second"))),
    make("tbody", {}, row("type", (f) => make("span", {}, ...raised(f.type))), row("steps of the derivative", (f) => f.steps, true),
      row("steps of the adjoint", (f) => f.back, true), row("operations to apply it", (f) => f.flops, true),
      row("numbers kept", (f) => f.numbers, true), row("value at the point", (f) => f.value)));
  results.prepend(make("div", { class: "versus card", tabindex: "0", role: "group", "aria-label": "Comparison" }, table));
}

// -- examples ------------------------------------------------------------------------------------------------

const gallery = byId("gallery");
let target = null;

async function shelf() {
  const found = await (await fetch("gallery.json")).json();
  const groups = Map.groupBy ? Map.groupBy(found, (e) => e.group) : found.reduce((m, e) => m.set(e.group, [...(m.get(e.group) || []), e]), new Map());
  for (const [group, inside] of groups) {
    byId("shelf").append(make("section", {}, make("h3", {}, group), make("ul", {}, ...inside.map((e) => make("li", {},
      make("button", { onclick: () => { gallery.close(); (target || panels[0]).set(e.text, e.shapes, null); keep(); } },
        make("b", {}, e.name), make("code", {}, e.text)))))));
  }
}

function opened() {
  target = panels.find((p) => p.root.contains(document.activeElement)) || panels[0];
  gallery.showModal();
  byId("search").value = "";
  sought();
  if (typing) byId("search").focus();
}

function sought() {
  const words = byId("search").value.toLowerCase().split(/\s+/);
  for (const section of byId("shelf").children) {
    let any = false;
    for (const item of section.querySelectorAll("li")) {
      item.hidden = !words.every((w) => item.textContent.toLowerCase().includes(w));
      any ||= !item.hidden;
    }
    section.hidden = !any;
  }
}

byId("examples").addEventListener("click", opened);
byId("search").addEventListener("input", sought);
byId("search").addEventListener("keydown", (e) => {
  if (e.key !== "Enter") return;
  e.preventDefault();
  byId("shelf").querySelector("section:not([hidden]) li:not([hidden]) button")?.click();
});
gallery.addEventListener("click", (e) => { if (e.target === gallery) gallery.close(); });

// -- keys, colours, words ------------------------------------------------------------------------------------

addEventListener("keydown", (e) => {
  const inside = e.target.closest("input, textarea, select, dialog");
  if (inside || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "/") { e.preventDefault(); panels[0].input.focus(); }
  if (e.key === "e" || e.key === "E") { e.preventDefault(); opened(); }
});

const THEMES = { "": ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] };
function coloured(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = THEMES[theme][0];
  byId("theme").setAttribute("aria-label", `Colours: ${THEMES[theme][1]}`);
}
byId("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(document.documentElement.dataset.theme || "") + 1) % 3];
  coloured(next);
  try { localStorage.setItem("riesz-theme", next); } catch { /* private window */ }
});

let quiet;
function say(words) {
  byId("said").textContent = words;
  byId("said").classList.add("shown");
  clearTimeout(quiet);
  quiet = setTimeout(() => byId("said").classList.remove("shown"), 1600);
}

byId("link").addEventListener("click", async () => {
  keep();
  try {
    await navigator.clipboard.writeText(location.href);
    say("Link copied: it restores this page while riesz play runs");
  } catch { say("The link is in the address bar"); }
});

// -- start ---------------------------------------------------------------------------------------------------

try { coloured(THEMES[localStorage.getItem("riesz-theme")] ? localStorage.getItem("riesz-theme") : ""); } catch { coloured(""); }
added();
const first = await (await fetch("start.json")).json();
if (!restore()) {
  panels[0].set(first.text || "x, W, b -> tanh(W @ x + b)", first.text ? first.shapes || "" : "3 2,3 2", null);
  arranged();
}
shelf();
if (typing) panels[0].input.focus();
