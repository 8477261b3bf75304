// The audit's data, numbers, signs of runs, and charts: specifications from Python, filled with data and titles.
const { audit, values, queries: browser, charts } = JSON.parse(await unpacked("data"));
const runNames = audit.runs.map((run) => run.name);
const measureNames = audit.measures.map((measure) => measure.name);

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A number with three decimals; one that would round to 0 keeps its first digit. */
function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 1e-9) value = 0;
  let text = value.toFixed(digits);
  if (value !== 0 && Number(text) === 0) text = Number(value.toFixed(digits + 1)) ? value.toFixed(digits + 1) : value.toExponential(0);
  return text.replaceAll("-", "−");
}

const count = (n) => n.toLocaleString("en");
const plural = (n, word, words) => `${count(n)} ${n === 1 ? word : words}`;

function fillSelect(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
}

const runLabel = (run) => run.name + (run.reference ? " (reference)" : run.baseline ? " (baseline)" : "");
const runOptions = () => audit.runs.map((run, place) => [place, runLabel(run)]);

// --- colours -------------------------------------------------------------------------------------------------------

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

/** The symbol of a run: its shape in its colour. */
function runSign(place) {
  const style = charts.styles[place];
  const sign = svg("svg", { width: 12, height: 12, viewBox: "0 0 12 12", "aria-hidden": "true" });
  sign.append(svg("path", { d: PATHS[style.shape], style: `fill:var(--${runColour(style)})` }));
  return sign;
}

// --- charts ----------------------------------------------------------------------------------------------------------

/** A copy of a specification with its placeholders replaced. */
function filled(part, places) {
  if (Array.isArray(part)) {
    if (part.length === 1 && typeof part[0] === "string" && part[0] in places) return places[part[0]];
    return part.map((item) => filled(item, places));
  }
  if (part && typeof part === "object") {
    return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, filled(value, places)]));
  }
  return typeof part === "string" && Object.hasOwn(places, part) ? places[part] : part;
}

/**
 * Draws a chart in an element. `description` is its text for screen readers; `without` names layers to leave out: those
 * without data, which have no extent.
 */
function draw(holder, name, { datasets, places, description, without = [], height = null, click = null }) {
  if (Object.values(datasets).some((rows) => !rows.length)) {
    clear(holder);
    const text = "No run has a value for this chart.";
    holder.setAttribute("aria-label", text);
    holder.replaceChildren(el("p", { class: "hint" }, text));
    return;
  }
  const specification = filled(charts.specifications[name], places);
  specification.datasets = { zero: [{}], ...datasets };
  specification.layer = specification.layer.filter((layer) => !without.includes(layer.name));
  if (height !== null) specification.height = height;
  specification.description = description;
  embed(holder, specification, click);
}

// --- differences by query ------------------------------------------------------------------------------------------

const MOST_BARS = 600;
const queryText = new Map(browser.queries.map((query) => [query.id, query.text]));

function drawQueries() {
  const [measure, first, second] = ["measure", "first", "second"].map((name) => Number(byId(`queries-${name}`).value));
  // A run without values of single queries has no array.
  const [of, against] = [values.values[measure][first] ?? [], values.values[measure][second] ?? []];
  const bars = [];
  for (let place = 0; place < values.sampled; place += 1) {
    if ((of[place] ?? null) === null || (against[place] ?? null) === null) continue;
    bars.push({ id: values.ids[place], of: of[place], against: against[place], difference: of[place] - against[place] });
  }
  bars.sort((a, b) => b.difference - a.difference);
  const above = bars.filter((bar) => bar.difference > 1e-9).length;
  const below = bars.filter((bar) => bar.difference < -1e-9).length;
  // Bars at even steps from the first to the last.
  const drawnBars = Math.min(bars.length, MOST_BARS);
  const step = (bars.length - 1) / Math.max(1, drawnBars - 1);
  const shown = Array.from({ length: drawnBars }, (_, place) => bars[Math.round(place * step)]);
  const labelled = shown.map((bar, place) => ({
    id: bar.id,
    query: queryText.get(bar.id) ?? "",
    place,
    difference: bar.difference,
    sign: bar.difference >= 0 ? "above" : "below",
    first: number(bar.of),
    second: number(bar.against),
    differenceText: number(bar.difference),
  }));
  const names = `${runNames[first]} minus ${runNames[second]}`;
  queriesLegend(measure, first, second);
  const facts = [`${names}, ${measureNames[measure]}: ${count(above)} of ${plural(bars.length, "query", "queries")} above 0, ` +
    `${count(bars.length - above - below)} equal, ${count(below)} below.`];
  const without = values.sampled - bars.length;
  if (without) facts.push(`${plural(without, "query does", "queries do")} not have a value in both.`);
  if (values.sampled < values.total) facts.push(`Sampled from ${count(values.total)} queries at even steps.`);
  if (shown.length < bars.length) facts.push(`Only ${count(shown.length)} bars are drawn, at even steps of the sorted queries.`);
  byId("queries-count").textContent = facts.join(" ");
  draw(byId("queries-chart"), "queries", {
    datasets: { bars: labelled },
    places: {
      "@x": "queries, sorted by difference",
      "@y": lines(`difference in ${measureNames[measure]}`, 300 / LETTER),
      "@first": `value of ${runNames[first]}`,
      "@second": `value of ${runNames[second]}`,
      "@signs": [colour("above"), colour("below")],
    },
    description: `Differences by query. ${facts.join(" ")}`,
    click: byId("list") && ((datum) => showQuery(datum.id, true)),
  });
}

/** The meaning of the bars' colours and directions. */
function queriesLegend(measure, first, second) {
  const entries = ["above", "below"].map((name, place) => {
    const sign = el("span", { class: "sign", "data-sign": name, "aria-hidden": "true" });
    const words = first === second ? "no difference" : `${runNames[first]} ${audit.measures[measure].signs[place]} than ${runNames[second]}`;
    return el("span", {}, sign, `${name} 0: ${words}`);
  });
  byId("queries-legend").replaceChildren(...entries);
}

// --- start -----------------------------------------------------------------------------------------------------------

/** Fills selects with options and draws in the holder, again whenever one changes. */
function control(holder, selects, redraw) {
  for (const [id, options, chosen] of selects) {
    fillSelect(byId(id), options, chosen);
    byId(id).addEventListener("change", redraw);
  }
  whenSeen(holder, redraw);
}

const perQuery = audit.measures.map((measure, place) => [place, measure.name]).filter(([place]) => audit.measures[place].perQuery);
const [comparedPlace, againstPlace] = charts.compared;

if (byId("queries-chart")) {
  const runs = [["queries-first", runOptions(), comparedPlace], ["queries-second", runOptions(), againstPlace]];
  control(byId("queries-chart"), [["queries-measure", perQuery, charts.focus], ...runs], drawQueries);
}
