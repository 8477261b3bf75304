// Draws the page's charts to fit their containers or, in print, the paper; texts are only ever text nodes.
const charts = JSON.parse(document.getElementById("data-charts").textContent);
const PAPER = 880;
const views = new Map();

async function draw(holder, specification) {
  const narrow = holder.clientWidth < 500;
  const config = {
    font: getComputedStyle(document.body).fontFamily,
    axis: { labelFontSize: 12, titleFontSize: 13, labelOverlap: true },
    axisX: { tickCount: narrow ? 5 : 10 },
    legend: { orient: "top", direction: narrow ? "vertical" : "horizontal", labelFontSize: 12, labelLimit: 0 },
  };
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config };
  const titled = withLines(specification, (holder.clientWidth - 60) / LETTER, specification.height / LETTER);
  const fitting = { ...titled, width: "container", autosize: { type: "fit-x", contains: "padding" } };
  views.get(holder)?.finalize();
  const { view } = await vegaEmbed(holder, fitting, options);
  views.set(holder, view);
}

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

const drawn = [];
for (const [place, specification] of charts.entries()) {
  const holder = document.getElementById(`chart-${place}`);
  if (!specification.facet) {
    drawn.push([holder, specification]);
    continue;
  }
  holder.classList.add("multiples");
  for (const [name, panel] of panels(specification)) {
    const [figure, caption, chart] = ["figure", "figcaption", "div"].map((tag) => document.createElement(tag));
    caption.textContent = name;
    chart.className = "chart";
    figure.append(caption, chart);
    holder.append(figure);
    drawn.push([chart, panel]);
  }
}

const drawAll = () => drawn.forEach(([holder, specification]) => draw(holder, specification));
drawAll();
onWidth(drawAll);
addEventListener("beforeprint", () => {
  for (const [holder, view] of views) {
    const beside = holder.closest(".multiples")?.children.length ?? 1;
    view.signal("width", PAPER / Math.min(beside, 3)).run();
  }
});
addEventListener("afterprint", () => dispatchEvent(new Event("resize")));
