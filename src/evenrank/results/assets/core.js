// Data, elements, numbers and themes. Texts are only ever inserted as text nodes.
const load = (id) => JSON.parse(document.getElementById(id).textContent);
const byId = (id) => document.getElementById(id);
const audit = load("data-figures");
const values = load("data-values");
const browser = load("data-queries");
const charts = load("data-charts");
const runNames = audit.runs.map((run) => run.name);
const measureNames = audit.measures.map((measure) => measure.name);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Makes a table that was added by a script foldable, like those in the page's source. */
function fold(table) {
  const headings = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    [...row.cells].forEach((cell, place) => {
      const head = row.parentElement === table.tHead;
      cell.setAttribute("role", head ? "columnheader" : cell.tagName === "TH" ? "rowheader" : "cell");
      if (!head && place) cell.dataset.label = headings[place];
      if (!head && !place) cell.toggleAttribute("data-long", /\S{11}/.test(cell.textContent));
    });
  }
  for (const group of [table.tHead, ...table.tBodies]) group.setAttribute("role", "rowgroup");
  table.setAttribute("role", "table");
  table.style.width = "min-content";
  const needed = table.offsetWidth / parseFloat(getComputedStyle(table).fontSize);
  table.style.width = "";
  const step = charts.folds.find((width) => needed <= width);
  table.classList.add(step ? `fold-${step}` : "fold");
}

/** A number with three decimals; one that would round to 0 keeps its first digit. */
function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 1e-9) value = 0;
  let text = value.toFixed(digits);
  if (value !== 0 && Number(text) === 0) text = Number(value.toFixed(digits + 1)) ? value.toFixed(digits + 1) : value.toExponential(0);
  return text.replaceAll("-", "−");
}

const interval = (low, high) => (low === null || low === undefined ? "–" : `${number(low)} to ${number(high)}`);
const count = (n) => n.toLocaleString("en");
const plural = (n, word, words) => `${count(n)} ${n === 1 ? word : words}`;

function fillSelect(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
}

const runLabel = (run) => run.name + (run.reference ? " (reference)" : run.baseline ? " (baseline)" : "");
const runOptions = () => audit.runs.map((run, place) => [place, runLabel(run)]);

// --- colours -------------------------------------------------------------------------------------------------------

/** A colour of the style sheet, which follows the theme and the print style. */
const colour = (name) => `var(--${name})`;

const COLOURS = 6;
const runColour = (style) => (style.colour < 0 ? "reference" : `run-${style.colour % COLOURS}`);

const PATHS = {
  circle: "M6,1.5A4.5,4.5 0 1,1 5.99,1.5Z",
  square: "M2,2H10V10H2Z",
  "triangle-up": "M6,1.2L11,10.2H1Z",
  "triangle-down": "M6,10.8L11,1.8H1Z",
  "triangle-right": "M10.8,6L1.8,11V1Z",
  "triangle-left": "M1.2,6L10.2,11V1Z",
  cross: "M4.3,1H7.7V4.3H11V7.7H7.7V11H4.3V7.7H1V4.3H4.3Z",
  diamond: "M6,0.6L11,6L6,11.4L1,6Z",
  star: "M6,0.5L7.4,4.3L11.5,4.5L8.3,7.1L9.4,11L6,8.7L2.6,11L3.7,7.1L0.5,4.5L4.6,4.3Z",
};

/** A symbol of the legend in charts: Vega has no star, and takes a path within −1 and 1 for one. */
const vegaShape = (name) => (name === "star" ? "M0,-1L0.25,-0.34L0.95,-0.31L0.4,0.13L0.59,0.81L0,0.42L-0.59,0.81L-0.4,0.13L-0.95,-0.31L-0.25,-0.34Z" : name);

/** The symbol of a run: its shape, on its line if `line` is set. */
function runSign(place, line = false) {
  const style = charts.styles[place];
  const paint = `var(--${runColour(style)})`;
  const width = line ? 40 : 12;
  const sign = svg("svg", { width, height: 12, viewBox: `0 0 ${width} 12`, "aria-hidden": "true" });
  if (line) {
    const stroke = { x1: 0, x2: 40, y1: 6, y2: 6, "stroke-width": 2.5, "stroke-dasharray": style.dash.join(" ") };
    sign.append(svg("line", { ...stroke, style: `stroke:${paint}` }));
  }
  const path = svg("path", { d: PATHS[style.shape], style: `fill:${paint}` });
  sign.append(line ? svg("g", { transform: "translate(14 0)" }, path) : path);
  return sign;
}

for (const legend of document.querySelectorAll("[data-legend]")) {
  const line = legend.dataset.legend === "lines";
  legend.replaceChildren(...audit.runs.map((run, place) => el("span", {}, runSign(place, line), runLabel(run))));
}

// --- theme ---------------------------------------------------------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
const themeButton = byId("theme");

function nameTheme() {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
}

nameTheme();
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
dark.addEventListener("change", nameTheme);
