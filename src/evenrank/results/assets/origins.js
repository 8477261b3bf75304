// Where the bias comes from: what orders add to their candidates.
const signed = (value) => (value > 1e-9 ? `+${number(value, 4)}` : number(value, 4));
const ends = (low, high) => (low === null ? "–" : `${signed(low)} to ${signed(high)}`);
const pText = (p) => (p === null ? "–" : p < 0.0005 ? "<0.001" : number(p));
const KINDS = {
  added: { what: "order adds", paint: "ink", shape: "circle" },
  ideal: { what: "ideal ranking adds", paint: "reference", shape: "star" },
  beyond: { what: "beyond relevance", paint: "link", shape: "square" },
};

function originsLegend(kinds) {
  const entries = kinds.map((kind) => {
    const { what, paint, shape } = KINDS[kind];
    const sign = svg("svg", { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" });
    if (kind !== "ideal") sign.append(svg("line", { x1: 1, x2: 33, y1: 6, y2: 6, "stroke-width": 2.5, style: `stroke:var(--${paint})` }));
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
  byId("origins-signs").textContent = `Right of 0: ${measure.signs[0]} than the candidates in random order (or than the ideal ranking). Left of 0: ${measure.signs[1]}.`;
  const sentences = rows.map((row) => `${row.run}: ${row.what} ${row.valueText}${row.low === null ? "" : ` (${row.intervalText})`}`);
  draw(holder, "origins", {
    datasets: { rows },
    without: rows.some((row) => row.low !== null) ? [] : ["interval"],
    places: {
      "@given": runs.map(({ run }) => run),
      "@kinds": kinds,
      "@shapes": kinds.map((kind) => vegaShape(KINDS[kind].shape)),
      "@paints": kinds.map((kind) => colour(KINDS[kind].paint)),
      "@x": lines(`difference in ${measure.name}`, (room(holder) - 150) / LETTER),
      "@measure": measure.name,
    },
    height: (12 + 16 * kinds.length) * runs.length,
    description: `What the order adds to ${measure.name}. ${sentences.join("; ")}.`,
  });
}

if (byId("origins-chart")) {
  const places = Object.keys(charts.origins);
  const options = places.map((place) => [place, measureNames[Number(place)]]);
  control(byId("origins-chart"), [["origins-measure", options, charts.lean in charts.origins ? charts.lean : places[0]]], drawOrigins);
}
