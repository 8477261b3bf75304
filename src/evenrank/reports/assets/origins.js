// Where the bias comes from: what orders add to their candidates, and the steps of a pipeline.
const signed = (value) => (value > 1e-9 ? `+${number(value, 4)}` : number(value, 4));
const ends = (low, high) => (low === null ? "–" : `${signed(low)} to ${signed(high)}`);
const pText = (p) => (p === null ? "–" : p < 0.0005 ? "<0.001" : number(p));
const KINDS = {
  added: { what: "order adds", paint: "ink", shape: "circle" },
  perfect: { what: "perfect ranking adds", paint: "reference", shape: "star" },
  beyond: { what: "beyond relevance", paint: "link", shape: "square" },
};

/** The title of an axis of differences. */
const differenceTitle = (holder, text) => lines(text, (holder.clientWidth - 150) / LETTER);

function originsLegend(kinds) {
  const entries = kinds.map((kind) => {
    const { what, paint, shape } = KINDS[kind];
    const sign = svg("svg", { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" });
    if (kind !== "perfect") sign.append(svg("line", { x1: 1, x2: 33, y1: 6, y2: 6, "stroke-width": 2.5, style: `stroke:var(--${paint})` }));
    sign.append(svg("g", { transform: "translate(11 0)" }, svg("path", { d: PATHS[shape], style: `fill:var(--${paint})` })));
    return el("span", {}, sign, what);
  });
  byId("origins-legend").replaceChildren(...entries);
}

function drawOrigins() {
  const holder = byId("origins-chart");
  const place = byId("origins-measure").value;
  const measure = audit.measures[Number(place)];
  const runs = charts.origins[place];
  const rows = runs.flatMap(({ run, marks }) =>
    marks.map(([kind, value, low, high, p]) => {
      const texts = { what: KINDS[kind].what, valueText: signed(value), intervalText: ends(low, high), pText: pText(p) };
      return { run, kind, value, low, high, ...texts };
    }),
  );
  const kinds = Object.keys(KINDS).filter((kind) => rows.some((row) => row.kind === kind));
  originsLegend(kinds);
  byId("origins-signs").textContent = `Right of 0: ${measure.signs[0]} than the candidates in random order (or than the perfect ranking). Left of 0: ${measure.signs[1]}.`;
  const sentences = rows.map((row) => `${row.run}: ${row.what} ${row.valueText}${row.low === null ? "" : ` (${row.intervalText})`}`);
  draw(holder, "origins", {
    datasets: { rows },
    without: rows.some((row) => row.low !== null) ? [] : ["interval"],
    places: {
      "@given": runs.map(({ run }) => run),
      "@kinds": kinds,
      "@shapes": kinds.map((kind) => vegaShape(KINDS[kind].shape)),
      "@paints": kinds.map((kind) => colour(KINDS[kind].paint)),
      "@x": differenceTitle(holder, `difference in ${measure.name}`),
      "@measure": measure.name,
    },
    height: (12 + 16 * kinds.length) * runs.length,
    description: `What the order adds to ${measure.name}. ${sentences.join("; ")}.`,
  });
}

function waterfallLegend(measure) {
  const texts = { above: `to the right: ${measure.signs[0]}`, below: `to the left: ${measure.signs[1]}`, level: "a sum" };
  const entries = Object.entries(texts).map(([name, text]) => el("span", {}, el("span", { class: "sign", "data-sign": name, "aria-hidden": "true" }), text));
  byId("waterfall-legend").replaceChildren(...entries);
}

function drawWaterfall() {
  const holder = byId("waterfall-chart");
  const place = byId("waterfall-measure").value;
  const measure = audit.measures[Number(place)];
  const steps = charts.waterfalls[place].map((step) => ({
    ...step,
    addsText: step.added === null ? "–" : signed(step.added),
    intervalText: step.added === null ? interval(step.low, step.high) : ends(...step.ends),
    pText: pText(step.p),
    sumText: number(step.end, 4),
  }));
  waterfallLegend(measure);
  const sentences = steps.map((step) =>
    step.added === null ? `${step.name} ${step.sumText}` : `${step.name} adds ${step.addsText} (${step.intervalText}), which makes ${step.sumText}`,
  );
  draw(holder, "waterfall", {
    datasets: { steps },
    without: [measure.nearerZero ? null : "zero", steps.some((step) => step.low !== null) ? null : "interval"],
    places: {
      ...Object.fromEntries(["above", "below", "reference", "ink"].map((name) => [`@${name}`, colour(name)])),
      "@labels": steps.map((step) => step.label),
      "@x": differenceTitle(holder, axisTitle(measure)),
    },
    height: 34 * steps.length,
    description: `${measure.name} from step to step: ${sentences.join("; ")}.`,
  });
}

const chosenOf = (data) => (charts.lean in data ? charts.lean : Object.keys(data)[0]);
const optionsOf = (data) => Object.keys(data).map((place) => [place, measureNames[Number(place)]]);

for (const [name, data, redraw] of [["origins", charts.origins, drawOrigins], ["waterfall", charts.waterfalls, drawWaterfall]]) {
  if (!byId(`${name}-chart`)) continue;
  control([[`${name}-measure`, optionsOf(data), chosenOf(data)]], redraw);
  // Titles are broken to the room there is.
  onWidth(redraw);
}
