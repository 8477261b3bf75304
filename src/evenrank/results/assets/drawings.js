// Draws the charts of a page's sections.

/** A specification whose axis titles are broken into lines. */
function withLines(part, across, up) {
  if (Array.isArray(part)) return part.map((item) => withLines(item, across, up));
  if (!part || typeof part !== "object") return part;
  const title = (axis, most) => (typeof axis?.title === "string" ? { ...axis, title: lines(axis.title, most) } : axis);
  const entries = Object.entries(part).map(([name, value]) => {
    if (name === "data") return [name, value];
    if (name === "x" || name === "y") return [name, title(value, name === "x" ? across : up)];
    return [name, withLines(value, across, up)];
  });
  return Object.fromEntries(entries);
}

/** The panels of a chart as separate charts, which are placed side by side if there is room. */
function panels({ data, facet, spec }) {
  const by = facet.field ?? facet.column.field;
  const names = facet.column?.sort ?? [...new Set(data.values.map((row) => row[by]))].sort();
  const of = (name) => data.values.filter((row) => row[by] === name);
  return names.filter((name) => of(name).length).map((name) => [name, { ...spec, data: { values: of(name) } }]);
}

function show(holder, specification) {
  whenSeen(holder, () => embed(holder, withLines(specification, (room(holder) - 60) / LETTER, specification.height / LETTER)));
}

for (const [place, specification] of JSON.parse(await unpacked("data")).entries()) {
  const holder = byId(`chart-${place}`);
  if (!specification.facet) {
    show(holder, specification);
    continue;
  }
  holder.classList.add("multiples");
  for (const [name, panel] of panels(specification)) {
    const chart = el("div", { class: "chart" });
    holder.append(el("figure", {}, el("figcaption", {}, name), chart));
    show(chart, panel);
  }
}
