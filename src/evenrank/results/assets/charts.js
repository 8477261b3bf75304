// The charts: specifications from Python, filled with data, titles and the theme's colours.
const runScales = () => ({
  "@runs": runNames,
  "@colours": charts.styles.map((style) => colour(runColour(style))),
  "@shapes": charts.styles.map((style) => vegaShape(style.shape)),
  "@dashes": charts.styles.map((style) => style.dash),
});

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

function configuration() {
  const [ink, muted, rule] = ["ink", "muted", "rule"].map(colour);
  const font = getComputedStyle(document.body).fontFamily;
  const axis = { labelColor: muted, titleColor: ink, gridColor: rule, domainColor: muted, tickColor: muted };
  return {
    background: null,
    font,
    view: { stroke: null },
    axis: { ...axis, labelFontSize: 12, titleFontSize: 13, titleFontWeight: 600, titlePadding: 10, labelOverlap: true },
    axisQuantitative: { grid: true },
    rule: { color: muted },
  };
}

const drawn = new Map();

// Paper is narrower than most windows: charts are redrawn for printing and afterwards.
const PAPER = { "section": 880, ".pair": 425, ".multiples": 280 };
addEventListener("beforeprint", () => {
  for (const [holder, { result }] of drawn) {
    const [, width] = Object.entries(PAPER).findLast(([name]) => holder.closest(name));
    result?.view.signal("width", width).run();
  }
});
addEventListener("afterprint", () => dispatchEvent(new Event("resize")));

/**
 * Draws a chart in an element, replacing its content. `description` is its text for screen readers; `without` names
 * layers to leave out: a line at 0 that has no meaning, and layers without data, which have no extent.
 */
async function draw(holder, name, { datasets, places, description, without = [], height = null, click = null }) {
  if (Object.values(datasets).some((rows) => !rows.length)) return drawNothing(holder);
  const specification = filled(charts.specifications[name], places);
  specification.datasets = { zero: [{}], ...datasets };
  specification.layer = specification.layer.filter((layer) => !without.includes(layer.name));
  if (height !== null) specification.height = height;
  specification.description = description;
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: configuration() };
  const turn = (drawn.get(holder)?.turn ?? 0) + 1;
  drawn.get(holder)?.result?.finalize();
  drawn.set(holder, { turn });
  const result = await vegaEmbed(holder, specification, options);
  if (drawn.get(holder).turn !== turn) return result.finalize();
  drawn.set(holder, { turn, result });
  if (click) result.view.addEventListener("click", (_, item) => item?.datum && click(item.datum));
}

/** Replaces a chart that has nothing to show by a message. */
function drawNothing(holder) {
  drawn.get(holder)?.result?.finalize();
  drawn.set(holder, { turn: (drawn.get(holder)?.turn ?? 0) + 1 });
  const text = "No run has a value for this chart.";
  holder.setAttribute("aria-label", text);
  holder.replaceChildren(el("p", { class: "hint" }, text));
}

const axisTitle = (measure) => `${shortened(measure.name, 40)} (${measure.better})`;

// --- effectiveness against bias ------------------------------------------------------------------------------------

/** A name shortened in the middle to at most so many letters. */
function shortened(name, most) {
  const letters = [...name];
  if (letters.length <= most) return name;
  const end = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}

const CORNERS = { ne: [1, -1], nw: [-1, -1], se: [1, 1], sw: [-1, 1] };

/** The ends of an axis as Vega draws it: with room at both ends, then at round numbers. */
function axisEnds(least, most, size) {
  const room = ((most - least || 1) * 24) / Math.max(1, size - 48);
  const [low, high] = [least - room, most + room];
  const rough = (high - low) / 10;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [[10, Math.sqrt(50)], [5, Math.sqrt(10)], [2, Math.sqrt(2)]].find(([, from]) => rough / power >= from)?.[0] ?? 1;
  const step = factor * power;
  return [Math.floor(low / step) * step, Math.ceil(high / step) * step];
}

/** Puts each label at the corner of its point where it overlaps the fewest labels, points and edges. */
function corners(points, width, height) {
  const span = (low, high, size) => {
    const all = points.flatMap((point) => [point[low], point[high]]);
    const [least, most] = axisEnds(Math.min(...all), Math.max(...all), size);
    return (value) => ((value - least) / (most - least)) * size;
  };
  const [x, up] = [span("xLow", "xHigh", width), span("yLeast", "yMost", height)];
  const y = (value) => height - up(value);
  const places = points.map((point) => [x(point.x), y(point.y)]);
  const taken = places.map(([left, top]) => [left - 8, top - 8, left + 8, top + 8]);
  const lines = points.flatMap((point) => {
    const [left, top] = [x(point.x), y(point.y)];
    const across = [x(point.xLow), top - 1, x(point.xHigh), top + 1];
    return [across, [left - 1, y(point.yMost), left + 1, y(point.yLeast)]];
  });
  const overlap = (a, b) => Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
  points.forEach((point, place) => {
    const [left, top] = places[place];
    point.label = shortened(point.run, Math.min(28, Math.floor((width * 0.42) / LETTER)));
    const size = point.label.length * LETTER;
    let best = null;
    for (const [corner, [right, down]] of Object.entries(CORNERS)) {
      const box = [right > 0 ? left + 9 : left - 9 - size, top + down * 12 - 8, right > 0 ? left + 9 + size : left - 9, top + down * 12 + 8];
      const outside = Math.max(0, -box[0]) + Math.max(0, box[2] - width);
      const cost = [...taken, ...lines].reduce((sum, other) => sum + overlap(box, other), 0) + outside * 1e4;
      if (best === null || cost < best.cost) best = { corner, box, cost };
    }
    point.corner = best.corner;
    taken.push(best.box);
  });
}

function drawPlane() {
  const holder = byId("plane-chart");
  const [xPlace, yPlace] = [Number(byId("plane-x").value), Number(byId("plane-y").value)];
  const [xMeasure, yMeasure] = [audit.measures[xPlace], audit.measures[yPlace]];
  const points = audit.runs.flatMap((run, place) => {
    const [x, y] = [audit.figures[place][xPlace], audit.figures[place][yPlace]];
    const [known, bounded] = [y.mean !== null, y.least !== null];
    if (x.mean === null || !(known || bounded)) return [];
    // The name of a run that has bounds alone stands at their middle, which is no figure and has no point.
    const middle = y.mean ?? (y.least + y.most) / 2;
    const ends = { xLow: x.low ?? x.mean, xHigh: x.high ?? x.mean, yLow: y.low ?? middle, yHigh: y.high ?? middle };
    const bounds = bounded ? { least: y.least, most: y.most } : { least: middle, most: middle };
    const reach = { yLeast: Math.min(ends.yLow, bounds.least), yMost: Math.max(ends.yHigh, bounds.most) };
    const texts = [x, y].map((figure) => (figure.mean === null ? "" : `${number(figure.mean)} (${interval(figure.low, figure.high)})`));
    const between = y.least === null ? "" : `bounds ${interval(y.least, y.most)}`;
    const yText = [texts[1], between].filter(Boolean).join(", ");
    return [{ run: run.name, x: x.mean, y: middle, known, bounded, ...ends, ...bounds, ...reach, xText: texts[0], yText }];
  });
  const sentences = points.map((point) => `${point.run}: ${xMeasure.name} ${point.xText}, ${yMeasure.name} ${point.yText}`);
  corners(points, Math.max(200, holder.clientWidth - 70), 440);
  const unused = Object.keys(CORNERS).filter((corner) => !points.some((point) => point.corner === corner));
  if (!points.some((point) => point.bounded)) unused.push("bounds");
  if (!points.some((point) => point.known)) unused.push("across", "interval", "point");
  draw(holder, "plane", {
    datasets: { points },
    without: yMeasure.nearerZero ? unused : [...unused, "zero"],
    places: {
      ...runScales(),
      "@x": lines(axisTitle(xMeasure), (holder.clientWidth - 70) / LETTER),
      "@y": lines(axisTitle(yMeasure), 440 / LETTER),
      "@xName": xMeasure.name,
      "@yName": yMeasure.name,
    },
    description: `Effectiveness against bias. ${sentences.join("; ")}.`,
  });
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
    click: (datum) => showQuery(datum.id, true),
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

// --- depth and ties ------------------------------------------------------------------------------------------------

const MARKED_RANKS = [1, 2, 3, 5, 10, 20, 30, 50, 100];

function drawDepth(field, title, holder = byId(`depth-${field}`)) {
  if (!holder) return;
  const deepest = Math.max(1, ...audit.depth.map((row) => row.rank));
  const marked = new Set([...MARKED_RANKS, deepest]);
  const ranks = audit.depth
    .filter((row) => row[field] !== null)
    .map((row) => ({ run: row.run, rank: row.rank, value: row[field], text: number(row[field]), marked: marked.has(row.rank) }));
  const ends = runNames.map((name) => {
    const rows = ranks.filter((row) => row.run === name);
    return rows.length ? `${name} from ${rows[0].text} at rank 1 to ${rows.at(-1).text} down to rank ${rows.at(-1).rank}` : `${name} none`;
  });
  draw(holder, "depth", {
    datasets: { ranks },
    without: field === "magnitude" ? [] : ["zero"],
    places: { ...runScales(), "@y": lines(title, 300 / LETTER), "@ranks": MARKED_RANKS.filter((rank) => rank <= deepest) },
    description: `${title} by rank depth: ${ends.join("; ")}.`,
  });
}

/** The share of the chosen group by rank. */
function drawShare() {
  const { label, field } = audit.shares[Number(byId("depth-group").value)];
  byId("depth-name").textContent = `group ${label}`;
  drawDepth(field, `mean share of ${shortened(label, 24)}`, byId("depth-share"));
}

/** The measures that ties can change, by place: where only bounds are known, those of effectiveness. */
const tied = audit.measures.flatMap((measure, place) => (charts.onlyBounds && measure.bias ? [] : [[measure, place]]));

function drawTies() {
  const places = { "@runs": runNames };
  for (const [place, name] of Object.entries({ "@band": "band", "@bandEdge": "band-edge", "@ink": "ink", "@paper": "paper" })) places[place] = colour(name);
  tied.forEach(([measure, place]) => {
    const rows = audit.runs.flatMap((run, r) => {
      const figure = audit.figures[r][place];
      if (figure.mean === null) return [];
      const texts = { meanText: number(figure.mean), intervalText: interval(figure.low, figure.high) };
      const row = { run: run.name, ...figure, ...texts, tieMeanText: number(figure.tieMean), tieText: interval(figure.tieLow, figure.tieHigh) };
      // Without ties, the two means coincide.
      if (figure.tieMean !== null && Math.abs(figure.tieMean - figure.mean) < 1e-6) row.tieMean = null;
      return [row];
    });
    const sentences = rows.map((row) => `${row.run}: mean ${row.meanText}, interval ${row.intervalText}, tie range ${row.tieText}`);
    draw(byId(`ties-${place}`), "ties", {
      datasets: { rows },
      without: [
        measure.nearerZero ? null : "zero",
        rows.some((row) => row.tieMean !== null) ? null : "tie mean",
        rows.some((row) => row.low !== null) ? null : "interval",
      ],
      places,
      height: 30 * Math.max(1, rows.length),
      description: `${measure.name}. ${sentences.join("; ")}.`,
    });
  });
}

function tieLegend() {
  const sign = (...parts) => svg("svg", { width: 34, height: 16, viewBox: "0 0 34 16", "aria-hidden": "true" }, ...parts);
  const line = svg("line", { x1: 2, x2: 32, y1: 8, y2: 8, "stroke-width": 2.5, style: "stroke:var(--ink)" });
  const band = svg("rect", { x: 2, y: 2, width: 30, height: 12, rx: 2, style: "fill:var(--band);stroke:var(--band-edge)" });
  const mean = svg("circle", { cx: 17, cy: 8, r: 4.5, style: "fill:var(--ink)" });
  const expected = svg("path", { d: "M17,2L23,8L17,14L11,8Z", "stroke-width": 1.5, style: "fill:var(--paper);stroke:var(--ink)" });
  const entries = [
    [sign(mean), "mean in the given order"],
    [sign(line), "95% interval over queries"],
    [sign(expected), "mean over all orders of tied documents"],
    [sign(band), "range over all orders of tied documents"],
  ];
  byId("ties-legend").replaceChildren(...entries.map(([drawing, text]) => el("span", {}, drawing, text)));
}

// --- start ---------------------------------------------------------------------------------------------------------

/** Fills selects with options; draws now and whenever one changes. */
function control(selects, redraw) {
  for (const [id, options, chosen] of selects) {
    fillSelect(byId(id), options, chosen);
    byId(id).addEventListener("change", redraw);
  }
  redraw();
}

const measureOptions = (wanted) => audit.measures.map((measure, place) => [place, measure.name]).filter(([place]) => wanted(audit.measures[place]));
const perQuery = measureOptions((measure) => measure.perQuery);
const [comparedPlace, againstPlace] = charts.compared;

function startCharts() {
  if (byId("plane-chart")) {
    const utility = measureOptions((measure) => !measure.bias);
    control([["plane-x", utility, utility[0][0]], ["plane-y", measureOptions((measure) => measure.bias), charts.lean]], drawPlane);
    // Labels are shortened to the room there is.
    onWidth(drawPlane);
  }
  if (byId("queries-chart")) {
    const chosen = charts.focus;
    control([["queries-measure", perQuery, chosen], ["queries-first", runOptions(), comparedPlace], ["queries-second", runOptions(), againstPlace]], drawQueries);
  }
  drawDepth("neutrality", "mean neutrality");
  drawDepth("magnitude", "mean lean");
  if (byId("depth-group")) control([["depth-group", audit.shares.map(({ label }, place) => [place, label]), 0]], drawShare);
  if (!byId("ties-charts")) return;
  tieLegend();
  byId("ties-charts").replaceChildren(
    ...tied.map(([measure, place]) =>
      el("figure", {}, el("figcaption", {}, measure.name, " ", el("small", {}, measure.better)), el("div", { class: "chart", id: `ties-${place}`, role: "group", "aria-label": `${measure.name} and its ties` })),
    ),
  );
  drawTies();
}
